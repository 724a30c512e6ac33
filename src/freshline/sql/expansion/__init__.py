"""How much a statement expands to: relations, expressions, rows of generators, lengths of texts."""
