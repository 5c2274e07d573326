"""Run Jupyter Book's command line with this interpreter; the package has no ``__main__``."""

import sys

if __name__ == "__main__":
    from jupyter_book.cli.main import main

    sys.argv[0] = "jupyter-book"
    main()
