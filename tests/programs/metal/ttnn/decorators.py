# SPDX-License-Identifier: Apache-2.0
"""The two classes of operations, with the names and the attribute that all releases have."""


class Operation:
    def __init__(self, name, function):
        self.python_fully_qualified_name = name
        self.function = function

    def __call__(self, *args, **named):
        """Runs it."""
        return self.function(*args, **named)


class FastOperation:
    slow = False

    def __init__(self, name, function):
        self.python_fully_qualified_name = name
        self.function = function

    def __call__(self, *args, **named):
        """Runs it."""
        if self.slow:
            return Operation(self.python_fully_qualified_name, self.function)(*args, **named)
        return self.function(*args, **named)


def register(name):
    return lambda function: FastOperation(name, function)
