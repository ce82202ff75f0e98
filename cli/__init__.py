"""The `cardquota` command: one module per subcommand, and what they read and print."""
