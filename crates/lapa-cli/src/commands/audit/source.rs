//! Subject of an audit: a finished run, or a configuration.

use std::path::{Path, PathBuf};

use lapa::files::FileError;
use lapa::files::Folder;
use lapa::run::CheckedRun;
use lapa_audit::{Attack, Audit, AuditError, Listener, Options, Statement, Subject};
use lapa_study::report::ReportError;

use crate::commands::{Source, create_folder, load_data};
use crate::failure::Failure;
use crate::progress::Mode;

/// Subject of an audit.
pub struct Audited {
    name: String,
    /// Folder of a finished run.
    folder: Option<PathBuf>,
    /// Privacy figures of a finished run.
    statement: Option<Statement>,
    subject: Subject,
}

impl Audited {
    /// Reads the folder of a run, or a configuration with changes.
    pub fn read(path: Option<&Path>, changes: &[String], mode: Mode) -> Result<Self, Failure> {
        if let Some(folder) = path.filter(|path| path.is_dir()) {
            return Self::run(folder, changes, mode);
        }
        let source = Source { config: path.map(Into::into), change: changes.to_vec(), seed: None };
        let (experiment, data) = source.prepare(None, mode)?;
        let subject = Subject::new(experiment, data)?;
        Ok(Self { name: source.name(), folder: None, statement: None, subject })
    }

    fn run(folder: &Path, changes: &[String], mode: Mode) -> Result<Self, Failure> {
        if let Some(change) = changes.first() {
            return Err(Failure::usage(format!(
                "-c {change}: {} is a finished run, and a finished run is audited unchanged; to change \
                 keys, audit a configuration file",
                folder.display()
            )));
        }
        let unfinished = || ReportError::Unfinished(folder.into());
        let CheckedRun { manifest, experiment, summary, .. } =
            CheckedRun::read(folder)?.ok_or_else(unfinished)?;
        let data = load_data(&experiment.inputs(), mode)?;
        manifest.expect_data(folder, &experiment, &data.origin())?;
        let name = folder.canonicalize().unwrap_or_else(|_| folder.into());
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let statement = Some(Statement::from(&summary.privacy));
        let subject = Subject::new(experiment, data)?;
        Ok(Self { name, folder: Some(folder.into()), statement, subject })
    }

    /// The folder for results, which is made if need be: as `--out` says, or beside what is audited.
    pub fn results(&self, out: Option<&Path>) -> Result<Folder, Failure> {
        match (out, &self.folder) {
            (Some(out), _) => create_folder(out),
            (None, None) => create_folder(&Path::new("audits").join(&self.name)),
            (None, Some(run)) => {
                let folder = Folder::open(run).and_then(|run| run.subfolder("audit"));
                Ok(folder.map_err(FileError::on("write to", run))?)
            }
        }
    }

    /// Makes the attacks.
    pub fn audit(
        self,
        attacks: &[Attack],
        options: &Options,
        listener: &mut Listener<'_>,
    ) -> Result<Audit, AuditError> {
        Audit::run(self.name, &self.subject, self.statement, attacks, options, listener)
    }
}
