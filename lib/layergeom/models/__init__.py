"""Everything that touches a language model."""
