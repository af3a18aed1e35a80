//! Single-precision matrix products over row-major slices, by the `matrixmultiply` crate.

/// A row-major matrix, possibly read transposed.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// `rows` × `cols` values, row by row.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert!(data.len() >= rows * cols, "matrix of {rows}×{cols} needs more data");
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The transpose, without moving data.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// c = a·b + beta·c, with c row-major.
pub(super) fn multiply(a: Matrix<'_>, b: Matrix<'_>, beta: f32, c: &mut [f32]) {
    assert_eq!(a.cols, b.rows, "inner dimensions of a matrix product");
    assert!(c.len() >= a.rows * b.cols, "product of {}×{} needs more room", a.rows, b.cols);
    // SAFETY: `Matrix::new` checked that `data` covers rows × cols, transposition only swaps the
    // strides, and c was checked above; c is a unique borrow, so it cannot overlap a or b.
    unsafe {
        matrixmultiply::sgemm(
            a.rows,
            a.cols,
            b.cols,
            1.0,
            a.data.as_ptr(),
            a.row_stride as isize,
            a.col_stride as isize,
            b.data.as_ptr(),
            b.row_stride as isize,
            b.col_stride as isize,
            beta,
            c.as_mut_ptr(),
            b.cols as isize,
            1,
        );
    }
}

/// c = a·b for square matrices of `side`: the product that fully connected layers use, for
/// benchmarks.
pub fn matrix_product(side: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    multiply(Matrix::new(a, side, side), Matrix::new(b, side, side), 0.0, c);
}
