"""Version 1 of the contract: ``answer.proto`` and the stubs generated from it by ``make proto``."""
