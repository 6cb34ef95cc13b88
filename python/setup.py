"""Builds the extensions with the project's own CMake files; pyproject.toml says the rest."""

import os
import pathlib
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent.parent


class CMakeBuild(build_ext):
    """One CMake build makes all extensions, which then only need to be copied to where setuptools looks for them."""

    def run(self):
        # Extensions that a build of the project has made already.
        made = os.environ.get("SLUICE_PYTHON_EXTENSIONS")
        self.copy_from(pathlib.Path(made) if made else self.build())

    def build(self):
        """The folder of the extensions."""
        folder = pathlib.Path(self.build_temp).resolve()
        configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        configure += ["-DSLUICE_BUILD_PYTHON=ON", "-DSLUICE_BUILD_TESTS=OFF", "-DSLUICE_BUILD_EXAMPLES=OFF", "-DSLUICE_BUILD_CLI=OFF"]
        configure += [f"-DPython3_EXECUTABLE={sys.executable}", f"-DPYTHON_EXECUTABLE={sys.executable}"]
        subprocess.run(configure, check=True)
        names = [extension.name.split(".")[-1] for extension in self.extensions]
        subprocess.run(["cmake", "--build", str(folder), "-j", str(os.cpu_count() or 1), "--target", *names], check=True)
        return folder / "python" / "sluice"

    def copy_from(self, folder):
        for extension in self.extensions:
            built = folder / pathlib.Path(self.get_ext_filename(extension.name)).name
            self.copy_file(str(built), self.get_ext_fullpath(extension.name))


setup(ext_modules=[Extension("sluice._runtime", []), Extension("sluice._convert", [])], cmdclass={"build_ext": CMakeBuild})
