"""The module `sluice` on a small VGG-19 that an example writes: python3 module_test.py MAKE_VGG19."""

import os
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy
import sluice

MAKE_VGG19 = sys.argv.pop(1)


class ModuleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.onnx = os.path.join(cls.folder.name, "vgg.onnx")
        cls.path = os.path.join(cls.folder.name, "vgg.sluice")
        subprocess.run([MAKE_VGG19, cls.onnx, "--divide", "32"], check=True, stdout=subprocess.DEVNULL)
        cls.report = sluice.convert(cls.onnx, cls.path)
        cls.picture = numpy.random.default_rng(1).random((1, 3, 224, 224), dtype="f4")
        cls.scores = sluice.Session(cls.path).run({"image": cls.picture})["scores"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_model_says_what_it_takes(self):
        model = sluice.Model(self.path)
        self.assertEqual(model.inputs, [{"name": "image", "shape": (1, 3, 224, 224), "dtype": numpy.dtype("f4")}])
        self.assertEqual([port["name"] for port in model.outputs], ["scores"])
        self.assertEqual(model.dimensions, {})
        self.assertGreater(self.report["weight_bytes"], 0)

    def test_same_bits_in_every_budget(self):
        self.assertEqual(self.scores.shape, (1, 1000))
        model = sluice.Model(self.path)
        smallest = model.minimum_budget()
        for budget in (smallest, "64MiB", None):
            session = sluice.Session(model, budget=budget)
            numpy.testing.assert_array_equal(session.run({"image": self.picture})["scores"], self.scores)
            if budget == smallest:
                self.assertLessEqual(session.memory["arena_bytes"] + session.memory["overhead_bytes"], smallest)
        session.set_budget(smallest)
        numpy.testing.assert_array_equal(session.run(self.picture)["scores"], self.scores)

    def test_other_arrays_are_converted_or_refused(self):
        session = sluice.Session(self.path)
        strided = numpy.ascontiguousarray(self.picture.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        self.assertFalse(strided.flags["C_CONTIGUOUS"])
        for same in (strided, self.picture.astype("f8"), self.picture.tolist(), OnlyDlpack(self.picture)):
            numpy.testing.assert_array_equal(session.run(same)["scores"], self.scores)
        with self.assertRaisesRegex(ValueError, r"'image': wants shape \(1, 3, 224, 224\), the array has \(3, 224, 224\)"):
            session.run(self.picture[0])
        with self.assertRaisesRegex(TypeError, "complex64"):
            session.run(self.picture.astype("c8"))
        with self.assertRaisesRegex(KeyError, "no input 'img'; it has 'image'"):
            session.run({"img": self.picture})

    def test_views_are_the_arena_itself(self):
        session = sluice.Session(self.path)
        view = session.input_view("image")
        self.assertEqual(view.shape, (1, 3, 224, 224))
        self.assertTrue(view.flags["WRITEABLE"])
        view[...] = self.picture
        session.run()
        scores = session.output_view()
        self.assertFalse(scores.flags["OWNDATA"] or scores.flags["WRITEABLE"])
        numpy.testing.assert_array_equal(scores, self.scores)
        kept = numpy.from_dlpack(session.run()["scores"])
        numpy.testing.assert_array_equal(kept, self.scores)
        with self.assertRaisesRegex(ValueError, "2 views"):
            session.set_budget("64MiB")
        with self.assertRaisesRegex(KeyError, "no output 'image'; it has 'scores'"):
            session.output_view("image")
        # The arrays keep the session.
        numpy.testing.assert_array_equal(scores, self.scores)
        del session
        numpy.testing.assert_array_equal(scores, self.scores)
        del view, scores

    def test_a_budget_changes_when_no_view_is_left(self):
        session = sluice.Session(self.path)
        view = session.input_view()
        del view
        session.set_budget("64MiB")

    def test_a_profile_is_read_or_refused(self):
        file = os.path.join(self.folder.name, "profile.json")
        with open(file, "w") as written:
            written.write("[]")
        with self.assertRaisesRegex(sluice.Error, "profile.json: is no device profile"):
            sluice.plan(self.path, profile=file)
        with self.assertRaises(sluice.Error):
            sluice.Session(self.path, profile=os.path.join(self.folder.name, "absent.json"))
        recorded = os.path.join(os.path.dirname(__file__), "..", "prediction", "recorded", "profile.json")
        measured, assumed = (sluice.plan(self.path, profile=profile).facts["compute_ms"] for profile in (recorded, None))
        self.assertNotEqual(measured, assumed)

    def test_errors_carry_their_numbers(self):
        with self.assertRaises(sluice.Error) as refused:
            sluice.Session(self.path, budget="1KiB")
        self.assertEqual(refused.exception.code, "budget too small")
        self.assertEqual(refused.exception.needed, sluice.Model(self.path).minimum_budget())
        self.assertEqual(refused.exception.available, 1024)
        with self.assertRaisesRegex(sluice.Error, "cannot be opened"):
            sluice.Model(os.path.join(self.folder.name, "absent"))
        with self.assertRaisesRegex(ValueError, "'lots' is not a size"):
            sluice.Session(self.path, budget="lots")
        with self.assertRaises(sluice.Error):
            sluice.convert(self.path, self.onnx + ".x")
        self.assertFalse(os.path.exists(self.onnx + ".x"))

    def test_plan_is_facts_and_a_picture(self):
        plan = sluice.plan(self.path, "64MiB")
        self.assertGreater(plan.facts["steps"], 10)
        self.assertTrue(plan.svg().startswith("<svg") or plan.svg().startswith("<?xml"))
        file = os.path.join(self.folder.name, "plan.bin")
        plan.save(file)
        self.assertGreater(os.path.getsize(file), 100)

    def test_open_dimensions_are_bound(self):
        file = os.path.join(self.folder.name, "several.sluice")
        sluice.convert(self.onnx, file, dims={"image.0": [1, 2]})
        self.assertEqual(sluice.Model(file).dimensions, {"image.0": [1, 2]})
        one = sluice.Session(file, dims={"image.0": 1})
        numpy.testing.assert_array_equal(one.run(self.picture)["scores"], self.scores)
        both = sluice.Session(file, dims={"image.0": 2}).run(numpy.concatenate([self.picture, self.picture]))["scores"]
        self.assertEqual(both.shape, (2, 1000))

    def test_the_lock_is_released_while_a_model_runs(self):
        # A run in one thread and a cancel from another: it can only arrive if the interpreter goes on beside the run.
        session = sluice.Session(self.path)
        outcomes = []

        def run_until_cancelled():
            for _ in range(100_000):
                try:
                    session.run(self.picture)
                except sluice.Error as error:
                    outcomes.append(error.code)
                    return

        thread = threading.Thread(target=run_until_cancelled)
        thread.start()
        session.cancel()
        thread.join(timeout=60)
        self.assertEqual(outcomes, ["cancelled"])
        numpy.testing.assert_array_equal(session.run(self.picture)["scores"], self.scores)


class OnlyDlpack:
    """What another library's tensor looks like to numpy."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


if __name__ == "__main__":
    unittest.main()
