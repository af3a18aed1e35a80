//! Agents in files.

use super::*;

/// The twin is a part of the agent only where the variant asks for it, also after a file.
#[test]
fn a_saved_agent_of_td3_has_two_critics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.safetensors");
    let tuned = small(16, 16);
    let settings = DdpgConfig { variant: DdpgVariant::Td3, discount: 0.5, ..tuned };
    let mut problem = power_problem(0, NoiseRule::PerDevice);
    let equal = problem.limits().equal();
    let equal = problem.evaluate(&equal).unwrap().objective;
    let mut td3 = Ddpg::new(settings).unwrap();
    let optimum = td3.optimize(&mut problem, 3, &mut go_on).unwrap();
    assert!(optimum.evaluation.objective < equal);
    let agent = td3.agent().unwrap();
    assert!(agent.parameters().twin.is_some_and(|[twin, _]| twin != agent.parameters().critic));
    agent.save(&path).unwrap();
    let loaded = Agent::load(&path, Ddpg::sizes(15, &settings), settings.learning()).unwrap();
    assert_eq!(loaded.parameters(), agent.parameters());
    for (settings, has_twin) in [(settings, true), (tuned, false)] {
        let mut next = Ddpg::with_agent(settings, &loaded).unwrap();
        next.optimize(&mut problem, 4, &mut go_on).unwrap();
        assert_eq!(next.agent().unwrap().parameters().twin.is_some(), has_twin);
    }
}

#[test]
fn a_saved_agent_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.safetensors");
    let settings = small(16, 16);
    let mut ddpg = Ddpg::new(settings).unwrap();
    let mut problem = power_problem(0, NoiseRule::PerDevice);
    ddpg.optimize(&mut problem, 3, &mut go_on).unwrap();
    let agent = ddpg.agent().unwrap();
    agent.save(&path).unwrap();
    let sizes = Ddpg::sizes(15, &settings);
    let loaded = Agent::load(&path, sizes, settings.learning()).unwrap();
    assert_eq!((loaded.sizes(), loaded.parameters()), (sizes, agent.parameters()));

    let search = |agent: &Agent| {
        let mut problem = power_problem(0, NoiseRule::PerDevice);
        let mut ddpg = Ddpg::with_agent(settings, agent).unwrap();
        ddpg.optimize(&mut problem, 4, &mut go_on).unwrap().amplitudes
    };
    assert_eq!(search(agent), search(&loaded));

    let wider = Sizes { hidden: 17, ..sizes };
    let error = Agent::load(&path, wider, settings.learning()).err().unwrap();
    assert!(matches!(error, SavedError::Sizes { found, .. } if found == sizes), "{error}");
    assert!(error.to_string().contains("hidden layers of 17"), "{error}");
}

#[test]
fn files_without_an_agent_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.safetensors");
    let sizes = Sizes { states: 3, actions: 1, hidden: 2 };
    let load = || Agent::load(&path, sizes, LEARNING).err().unwrap();
    assert!(matches!(load(), SavedError::File(FileError { action: "read", .. })));
    std::fs::write(&path, "not an agent").unwrap();
    assert!(matches!(load(), SavedError::Tensors { .. }));
    let empty: [(&str, safetensors::tensor::TensorView<'_>); 0] = [];
    let write = |metadata: &str| {
        let metadata = [("lapa_ddpg".into(), metadata.into())].into();
        std::fs::write(&path, safetensors::serialize(empty.clone(), Some(metadata)).unwrap())
    };
    write("{}").unwrap();
    assert!(matches!(load(), SavedError::NoAgent { .. }));
    write(r#"{"states":3,"actions":1,"hidden":2}"#).unwrap();
    assert!(matches!(load(), SavedError::Tensors { .. }));
    std::fs::write(&path, safetensors::serialize(empty.clone(), None).unwrap()).unwrap();
    assert!(matches!(load(), SavedError::NoAgent { .. }));
}
