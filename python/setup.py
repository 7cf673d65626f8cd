# SPDX-License-Identifier: Apache-2.0
"""Compiles the extensions for pip, against the installed libttmem that pkg-config finds."""

import subprocess
import sys
import sysconfig

from setuptools import Extension, setup


def pkg_config(*what):
    try:
        result = subprocess.run(["pkg-config", *what, "ttmem"], capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("pkg-config was not found; it tells where libttmem is")
    if result.returncode != 0:
        sys.exit(
            "pkg-config does not know libttmem: install it first (./dev install --prefix P), "
            "and set PKG_CONFIG_PATH=P/lib/pkgconfig\n" + result.stderr
        )
    return result.stdout.strip()


# One file for 3.10 and every later version; 3.9 lacks a part of that ABI and gets its own, and
# free-threaded builds have none.
stable = sys.version_info >= (3, 10) and not sysconfig.get_config_var("Py_GIL_DISABLED")
folder = pkg_config("--variable=libdir")
modules = {
    "_frames": ["_frames.c", "python/python-frames.c", "python/python-layout.c"],
    "_ttmem": ["_ttmem.c", "python/python-arguments.c"],
}

setup(
    version=pkg_config("--modversion"),
    ext_modules=[
        Extension(
            f"ttmem.{name}",
            sources,
            include_dirs=[".", pkg_config("--variable=includedir")],
            library_dirs=[folder],
            runtime_library_dirs=[folder],
            libraries=["ttmem"],
            define_macros=[
                ("_GNU_SOURCE", None),
                *([("Py_LIMITED_API", "0x030A0000")] if stable else []),
            ],
            py_limited_api=stable,
        )
        for name, sources in modules.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if stable else {},
)
