"""`python -m hack.dashboards`: writes the files in the chart anew."""

from hack.dashboards import DASHBOARDS, FOLDER, render


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (FOLDER / f"{dashboard.name}.json").write_text(render(dashboard), "utf-8")


if __name__ == "__main__":
    main()
