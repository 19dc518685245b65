pub(crate) fn run(
    _: &crate::flags::InspectArgs,
    _: &crate::settings::Options,
    _: super::Say,
) -> anyhow::Result<()> {
    Ok(())
}
