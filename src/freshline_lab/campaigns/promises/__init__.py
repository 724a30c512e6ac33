"""Live runs with outages and kills, compared with all that was promised."""
