//! `lapa model`: what a model is made of.

use std::path::Path;

use clap::Subcommand;
use lapa::config::ModelName;
use lapa::data::DataName;
use lapa::error::FederationError;
use lapa::model::{Layer, LayerInfo, Network, Shape, network};
use serde::Deserialize;
use serde_json::json;

use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Formatted};
use crate::progress::Mode;

/// Show a model: its layers, their shapes, parameters and multiply-adds.
#[derive(Subcommand)]
pub enum Command {
    /// Show the layers of a model, their shapes, parameters and multiply-adds.
    ///
    /// Places count from 0, as in the names of tensors; layers of a block have its place before their
    /// own. Multiply-adds are those of the products of one sample's outputs; a gradient takes about
    /// three times as many.
    ///
    ///   lapa model show resnet-8 --shape 3x32x32
    ///   lapa model show -c data.name=cifar:cifar-10-batches-bin -c model.name=cifar-cnn
    ///   lapa model show mine.toml
    #[command(verbatim_doc_comment)]
    Show {
        /// A built-in model (cnn, cnn-tanh, cifar-cnn, resnet-8, mlp, logistic), or a configuration file
        /// (TOML); without either, the quickstart's.
        #[arg(value_name = "NAME|CONFIG")]
        what: Option<String>,
        /// Set a key, as `section.key=value`; repeatable.
        #[arg(short = 'c', value_name = "KEY=VALUE")]
        change: Vec<String>,
        /// Shape of a sample, as channels × rows × columns; without it, that of the data.
        #[arg(long, value_name = "CxRxC", value_parser = shape)]
        shape: Option<Shape>,
        /// Number of classes, with --shape.
        #[arg(long, value_name = "N", default_value_t = 10, requires = "shape",
              value_parser = clap::value_parser!(u16).range(2..=256))]
        classes: u16,
        #[command(flatten)]
        formatted: Formatted,
    },
}

fn shape(text: &str) -> Result<Shape, String> {
    let sides: Option<Vec<usize>> = text
        .split(['x', '×'])
        .map(|side| side.parse().ok().filter(|side| (1..=1 << 16).contains(side)))
        .collect();
    match sides.as_deref() {
        Some(&[channels, rows, cols]) => Ok(Shape::new(channels, rows, cols)),
        _ => Err("expected three numbers from 1 to 65536, such as 3x32x32".into()),
    }
}

pub fn execute(command: Command) -> CommandResult {
    let Command::Show { what, mut change, shape, classes, formatted } = command;
    let is_name = |what: &&String| ModelName::deserialize(json!(what)).is_ok();
    if let Some(what) = what.as_ref().filter(|what| !is_name(what) && !Path::new(what).exists())
        && let Err(error) = ModelName::deserialize(json!(what))
    {
        return Err(Failure::usage(format!("{what} is no file, and no model: {error}")));
    }
    let config = what.as_ref().filter(|what| !is_name(what)).map(Path::new);
    let name = what.as_ref().filter(is_name);
    change.extend(name.map(|name| format!("model.name={name}")));
    let experiment = super::experiment(config, &change)?;
    let (shape, classes) = match (shape, &experiment.data.name) {
        (Some(shape), _) => (shape, usize::from(classes)),
        // The built-in data sets need not be there.
        (None, DataName::Files(..)) => {
            let inputs = experiment.data.clone().into();
            let data = super::load_data(&inputs, Mode::choose(false))?;
            (data.train.shape, data.classes)
        }
        (None, DataName::Cifar10) => (Shape::new(3, 32, 32), 10),
        (None, _) => (Shape::new(1, 28, 28), 10),
    };
    let shape = experiment.model.feature_map().shape(shape)?;
    let network = network(&experiment.model, shape, classes)
        .map_err(|source| Failure::from(FederationError::Model { shape, source: source.into() }))?;
    let name = experiment.model.name;
    let layers: Vec<_> = network.layers().iter().map(row).collect();
    let value = json!({
        "model": name,
        "shape": sides(shape),
        "classes": classes,
        "parameters": network.parameter_count(),
        "multiply_adds": multiply_adds(&network),
        "layers": layers,
    });
    output::print(formatted.format, &value, || text(name, &network, shape))
}

fn sides(shape: Shape) -> [usize; 3] {
    [shape.channels, shape.rows, shape.cols]
}

fn multiply_adds(network: &Network) -> u64 {
    network.layers().iter().map(|layer| layer.multiply_adds).sum()
}

fn row(info: &LayerInfo) -> serde_json::Value {
    json!({
        "place": info.place,
        "layer": info.layer,
        "input": sides(info.input),
        "output": sides(info.output),
        "parameters": info.parameters,
        "multiply_adds": info.multiply_adds,
    })
}

/// A layer in words: its type and its numbers.
fn describe(layer: &Layer) -> String {
    let word = layer.word();
    match *layer {
        Layer::Conv { kernel, stride, padding, standardized, .. } => {
            let mut text = format!("{word} {kernel}×{kernel}");
            if stride > 1 {
                text += &format!(", stride {stride}");
            }
            if padding > 0 {
                text += &format!(", padding {padding}");
            }
            text + if standardized { ", standardized" } else { "" }
        }
        Layer::MaxPool { kernel, stride } | Layer::AveragePool { kernel, stride } => {
            let stride = stride.filter(|&stride| stride != kernel);
            let stride = stride.map_or_else(String::new, |stride| format!(", stride {stride}"));
            format!("{word} {kernel}×{kernel}{stride}")
        }
        Layer::GroupNorm { groups } => format!("{word}, {}", output::count(groups, "group")),
        _ => word.into(),
    }
}

fn text(name: ModelName, network: &Network, shape: Shape) -> String {
    let columns: [Column<LayerInfo>; 5] = [
        ("place", |info| info.place.clone()),
        ("layer", |info| describe(&info.layer)),
        (">output", |info| info.output.to_string()),
        (">parameters", |info| dotted(info.parameters as u64)),
        (">multiply-adds", |info| dotted(info.multiply_adds)),
    ];
    let table = output::columns(network.layers(), &columns);
    format!(
        "{} for samples of {shape}\n\n{table}\n{} parameters, {} multiply-adds for a sample\n",
        lapa::config::word_of(name),
        network.parameter_count(),
        multiply_adds(network),
    )
}

/// A number, or a dot for none.
fn dotted(value: u64) -> String {
    if value == 0 { "·".into() } else { value.to_string() }
}
