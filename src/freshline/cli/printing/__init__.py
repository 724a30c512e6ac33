"""How plans and simulations are printed."""
