"""Writes features.json: feature maps by Kymatio and scikit-image, to test our own against.

    python -m venv venv && venv/bin/pip install numpy==2.2.6 kymatio==0.3.0 scikit-image==0.26.0 scipy==1.14.1
    venv/bin/python crates/lapa/tests/vectors/features_reference.py

There is no random generator: two runs of the same versions write the same bytes. README.md describes
the file.
"""

import json
import pathlib

import kymatio
import numpy
import skimage
from kymatio.numpy import Scattering2D
from skimage.feature import hog

HERE = pathlib.Path(__file__).parent


def unit(start, count):
    """As in generate.py: `count` numbers k/2^20 in [0, 1)."""
    h = numpy.arange(start, start + count, dtype=numpy.uint32)
    h = h * numpy.uint32(2654435761)
    h = h ^ (h >> numpy.uint32(15))
    h = h * numpy.uint32(2246822519)
    h = h ^ (h >> numpy.uint32(13))
    return (h >> numpy.uint32(12)).astype(numpy.float64) / 2**20


def image(start, channels, rows, cols):
    return unit(start, channels * rows * cols).reshape(channels, rows, cols)


def scattering(x):
    coefficients = Scattering2D(J=2, shape=x.shape[1:], L=8)(x)
    return coefficients.reshape(-1, *coefficients.shape[2:])


def histograms(x):
    blocks = hog(
        numpy.moveaxis(x, 0, -1),
        orientations=9,
        pixels_per_cell=(4, 4),
        cells_per_block=(2, 2),
        block_norm="L2-Hys",
        feature_vector=False,
        channel_axis=-1,
    )
    rows, cols = blocks.shape[:2]
    return numpy.moveaxis(blocks.reshape(rows, cols, -1), -1, 0)


def case(features, start, shape):
    out = features(image(start, *shape))
    data = [float(f"{value:.6g}") for value in out.ravel()]
    return {"start": start, "input": shape, "output": list(out.shape), "data": data}


vectors = {
    "versions": {
        "numpy": numpy.__version__,
        "kymatio": kymatio.__version__,
        "scikit-image": skimage.__version__,
    },
    "scattering": [case(scattering, 1, [1, 28, 28]), case(scattering, 5000, [3, 10, 13])],
    "hog": [case(histograms, 1, [1, 28, 28]), case(histograms, 5000, [3, 10, 17])],
}
(HERE / "features.json").write_text(json.dumps(vectors, separators=(",", ":")) + "\n")
