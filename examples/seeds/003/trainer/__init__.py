"""A trainer that is a package, as the tutorial starts it."""
