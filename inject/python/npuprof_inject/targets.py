"""The targets: found once their module is there, wrapped, and accounted for at the exit."""


def install(settings):
    pass
