"""The table of choices made the other way, as the page shows it."""

import pandas as pd


def rounded_alternatives(table: pd.DataFrame) -> pd.DataFrame:
    """Alternatives rounded for reading, choices together and models side by side below them.

    Args:
        table: columns ``choice``, ``alternative``, ``quantity``, ``model``, ``default``, ``value``,
            ``largest``, ``apart`` and ``places``.
    """
    ordered = table.sort_values(["choice", "quantity", "alternative"], kind="stable")
    return pd.DataFrame(
        {
            "choice (default)": ordered["choice"],
            "alternative": ordered["alternative"],
            "model": ordered["model"],
            "quantity": ordered["quantity"],
            "median": [
                f"{default:.2f} → {value:.2f}"
                for default, value in zip(ordered["default"], ordered["value"], strict=True)
            ],
            "largest change": [f"{change:+.2f}" for change in ordered["largest"]],
            "layers apart": [
                f"{apart} of {places}"
                for apart, places in zip(ordered["apart"], ordered["places"], strict=True)
            ],
        }
    )
