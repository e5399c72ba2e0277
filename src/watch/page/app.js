// Starts the page: where its data comes from, and what makes it ask again.
const given = JSON.parse(byId("data").textContent);
const view = new View(given.series ? new EmbeddedSource(given) : new LiveSource(given.token));
if (matchMedia("(max-width: 760px)").matches) byId("runs-panel").open = false;
globalThis.isSettled = () => view.unsettled().length === 0;  // for tests, as the next
globalThis.unsettled = () => view.unsettled();
view.source.listen((what) => {
  if (what === "lost") view.say("lost", "the server does not answer; trying again");
  else view.refresh();
});
view.refresh();
