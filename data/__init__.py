"""Tasks, environments, delegations and training examples."""
