"""Turns examples into checkpoints; the first trainers arrive with the token classifier and the autoencoder."""
