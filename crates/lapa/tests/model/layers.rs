//! Lists of layers: their parameters, convolutions of any size, what is refused.

use super::*;

/// Numbers from the literature, for 3×32×32 images: Tramèr & Boneh (2021) and Banbury et al. (2021).
#[test]
fn models_have_the_published_numbers_of_parameters() {
    let count =
        |layers: &[Layer]| Network::new(Shape::new(3, 32, 32), layers).unwrap().parameter_count();
    assert_eq!(count(&cifar_cnn(10)), 550_570);
    // The ResNet-8 of MLPerf Tiny has 78,666, of which 480 are means and variances of batch norm.
    assert_eq!(count(&resnet8(Norm::Group, 10)), 78_666 - 480);
}

#[test]
fn the_paper_s_cnn_has_21880_parameters() {
    for (norm, count) in [(Norm::Batch, 21_880), (Norm::Group, 21_880), (Norm::None, 21_840)] {
        assert_eq!(worker(&cnn(norm, 10), Kernels::Fast).0.parameter_count(), count);
    }
}

/// Convolutions of every size, stride and padding, and blocks of them, against im2col.
#[test]
fn any_convolution_matches_the_im2col_twin() {
    let sides = [(1, 1), (5, 7), (8, 8), (9, 33), (16, 16), (17, 20), (32, 32)];
    let mut seed = 0;
    for (rows, cols) in sides {
        for (kernel, stride, padding) in
            [(1, 1, 0), (1, 2, 0), (3, 1, 1), (3, 1, 0), (3, 2, 1), (4, 3, 2), (5, 1, 2), (7, 2, 6)]
        {
            if kernel > rows + 2 * padding || kernel > cols + 2 * padding {
                continue;
            }
            for (planes, channels) in [(1, 3), (3, 16), (17, 9), (32, 40)] {
                seed += 1;
                let conv = |channels, stride, padding| Layer::Conv {
                    channels,
                    kernel,
                    stride,
                    padding,
                    standardized: seed % 3 == 0,
                };
                let mut layers = vec![conv(channels, stride, padding), Layer::Tanh];
                if kernel % 2 == 1 {
                    let block = vec![conv(channels + 1, 1, kernel / 2)];
                    layers.extend([Layer::Residual { layers: block }, Layer::Tanh]);
                }
                layers.push(Layer::Linear { outputs: 7 });
                compare_with_twin(Shape::new(planes, rows, cols), &layers, 3, seed);
            }
        }
    }
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    let refuse =
        |layers: &[Layer]| Network::new(Shape::new(1, 6, 6), layers).err().unwrap().to_string();
    assert_eq!(
        refuse(&[Layer::conv(2, 7)]),
        "layer 0 (conv) does not fit its input 1×6×6: \
         a kernel of 7 needs at least 7 rows and columns"
    );
    let layers = [Layer::Linear { outputs: 3 }, Layer::max_pool(2)];
    assert!(refuse(&layers).contains("layer 1 (max-pool)"));
    let block = |layers| Layer::Residual { layers };
    let text = refuse(&[Layer::Relu, block(vec![Layer::Relu, Layer::conv(1, 7)])]);
    assert!(text.starts_with("layer 1.1 (conv) does not fit its input 1×6×6"), "{text}");
    let text = refuse(&[block(vec![Layer::conv(1, 3)])]);
    assert!(text.contains("no stride of a 1×1 convolution makes 4×4 of 6×6"), "{text}");
    assert!(refuse(&[block(vec![])]).contains("the block has no layers"));
    let huge = Layer::Linear { outputs: usize::MAX };
    assert!(refuse(&[huge.clone(), huge]).contains("values"));
    assert!(
        refuse(&[Layer::GroupNorm { groups: 4 }]).contains("4 groups do not divide 1 channels")
    );
    assert!(refuse(&[Layer::Linear { outputs: 0 }]).contains("no outputs"));
}
