"""missing_half_test.py PROGRAM SUBJECT.so: a subject of pmlab whose second half, which opens images, was not built."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutations"))
from verifier import Verifier  # noqa: E402

PROGRAM, SUBJECT = sys.argv[1:3]


class MissingHalf(unittest.TestCase):
    def test_the_half_that_opens_images_is_no_subject(self):
        images = pathlib.Path(SUBJECT).parent / "images" / pathlib.Path(SUBJECT).name
        verifier = Verifier(self, PROGRAM, images)
        for arguments, error in ((("--subject", str(images)), "is the half of"),
                                 (("--index", f"images/{images.stem}"), "there is no index")):
            status, output, _ = verifier.run(*arguments, "--budget", "1")
            self.assertEqual(status, 2, output)
            self.assertIn(error, output)

    def test_the_other_half_that_is_not_built_is_no_violation(self):
        name = pathlib.Path(SUBJECT).stem
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "bin" / "pmlab-simulated"
            objects = pathlib.Path(folder) / "lib" / "pmlab" / "simulated" / "verify"
            program.parent.mkdir()
            objects.mkdir(parents=True)
            shutil.copy(PROGRAM, program)
            shutil.copy(SUBJECT, objects)
            shutil.copy(pathlib.Path(SUBJECT).parent.parent / f"{name}.so", objects.parent)  # one that is measured
            verifier = Verifier(self, program, SUBJECT)
            for arguments in (("--index", name), ("--subject", SUBJECT), ("--subject", SUBJECT, "--crashes")):
                status, output, _ = verifier.run(*arguments, "--budget", "1")
                self.assertEqual(status, 2, output)
                self.assertIn(f"images/{name}.so", output)
                self.assertIn("--target pmlab_checker", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
