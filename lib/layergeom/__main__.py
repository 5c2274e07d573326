"""``python -m layergeom``."""

from layergeom.cli import main

if __name__ == "__main__":
    main()
