"""As much of torch as a snippet calls."""


class npu:  # pylint: disable=invalid-name
    @staticmethod
    def synchronize():
        pass


class distributed:  # pylint: disable=invalid-name
    @staticmethod
    def is_available():
        return False
