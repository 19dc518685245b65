pub(crate) fn run(_: &crate::flags::DemoArgs) -> anyhow::Result<()> {
    Ok(())
}
