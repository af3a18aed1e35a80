"""Pictures by Pillow and tables by pyarrow, for the tests of data sets: writes pictures.json.

    pip install numpy pillow pyarrow && python pictures.py
"""

import io
import json
import pathlib

import numpy
import PIL
import pyarrow
import pyarrow.parquet
from PIL import Image

random = numpy.random.default_rng(21)


def smooth(rows, cols, channels):
    """A picture that JPEG keeps well: waves and a little noise."""
    y, x, c = numpy.mgrid[0:rows, 0:cols, 0:channels]
    waves = 128 + 60 * numpy.sin(x / 3 + c) + 40 * numpy.cos(y / 2 - c)
    return (waves + random.uniform(-4, 4, waves.shape)).clip(0, 255).astype(numpy.uint8)


def encode(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def decoded():
    """Encoded pictures and what Pillow decodes them to, in gray or RGB."""
    gray, color = smooth(12, 17, 1)[..., 0], smooth(13, 10, 3)
    alpha = numpy.dstack([color, random.integers(0, 256, color.shape[:2], dtype=numpy.uint8)])
    wide = Image.fromarray(gray.astype(numpy.uint16) * 257)
    images = {
        "png gray": (encode(Image.fromarray(gray), format="PNG"), "L"),
        "png 1 bit": (encode(Image.fromarray(gray > 128), format="PNG"), "L"),
        "png palette": (encode(Image.fromarray(color).quantize(16), format="PNG"), "RGB"),
        "png color": (encode(Image.fromarray(color), format="PNG"), "RGB"),
        "png alpha": (encode(Image.fromarray(alpha, "RGBA"), format="PNG"), "RGB"),
        "jpeg gray": (encode(Image.fromarray(gray), format="JPEG", quality=95), "L"),
        "jpeg color": (encode(Image.fromarray(color), format="JPEG", quality=95, subsampling=0), "RGB"),
        "jpeg progressive": (
            encode(Image.fromarray(color), format="JPEG", quality=95, subsampling=0, progressive=True),
            "RGB",
        ),
    }
    cases = []
    for name, (data, mode) in images.items():
        image = Image.open(io.BytesIO(data))
        pixels = numpy.asarray(image.convert(mode))
        if name == "png alpha":
            pixels = color  # Not blended: the alpha channel is left out.
        cases.append(case(name, data, pixels))
    cases.append(case("png 16 bit", encode(wide, format="PNG"), gray))
    return cases


def case(name, data, pixels):
    shape = [1 if pixels.ndim == 2 else 3, *pixels.shape[:2]]
    return {"name": name, "file": data.hex(), "shape": shape, "pixels": pixels.tobytes().hex()}


def resized():
    """Pictures that Pillow resizes by bilinear interpolation, which counts all pixels when it shrinks."""
    cases = []
    for rows, cols, channels, to in [(9, 7, 3, (4, 4)), (9, 7, 1, (16, 11)), (20, 31, 3, (3, 32))]:
        pixels = random.integers(0, 256, (rows, cols, channels), dtype=numpy.uint8)
        image = Image.fromarray(pixels if channels == 3 else pixels[..., 0])
        small = image.resize((to[1], to[0]), Image.Resampling.BILINEAR)
        data = encode(image, format="PNG")
        cases.append({**case(f"{rows}x{cols}", data, numpy.asarray(small)), "size": to})
    return cases


def tables():
    """Tables that pyarrow writes."""
    png = [encode(Image.fromarray(smooth(4, 3, 3)), format="PNG") for _ in range(10)]
    hugging_face = {
        "image": [{"bytes": data, "path": f"{i}.png"} for i, data in enumerate(png)],
        "label": list(range(10)),
        "writer": [f"w{i}" for i in range(10)],
    }
    sensors = {
        "x": numpy.arange(10, dtype=numpy.float32) / 4,
        "label": [i % 2 for i in range(10)],
        "y": list(range(10)),
        "device": ["b", "a", "b", "c", "a", "b", "a", "c", "b", "a"],
    }

    def write(columns, **options):
        out = io.BytesIO()
        options = {"compression": "snappy", "row_group_size": 4, **options}
        pyarrow.parquet.write_table(pyarrow.table(columns), out, **options)
        return out.getvalue().hex()

    gap = [None if i == 6 else i for i in range(10)]
    return {
        "pictures": write(hugging_face),
        "sensors": write(sensors),
        "gzip": write(sensors, compression="gzip"),
        "null": write({**sensors, "y": gap}),
        "nan": write({**sensors, "x": [float("nan") if i == 5 else 0.0 for i in range(10)]}),
        "lists": write({**sensors, "y": [[i] for i in range(10)]}),
        "text": write({**sensors, "y": [str(i) for i in range(10)]}),
        "no label": write({"x": sensors["x"]}),
        "label 300": write({**sensors, "label": [300 if i == 7 else 1 for i in range(10)]}),
        "float label": write({**sensors, "label": sensors["x"]}),
    }


versions = {"numpy": numpy.__version__, "pillow": PIL.__version__, "pyarrow": pyarrow.__version__}
result = {"versions": versions, "decoded": decoded(), "resized": resized(), "tables": tables()}
path = pathlib.Path(__file__).parent / "pictures.json"
path.write_text(json.dumps(result, separators=(",", ":")) + "\n")
