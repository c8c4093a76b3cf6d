// The parts of the page that need a script: copying, and the length of the timeline.
const reveal = (root) => root.querySelectorAll("[data-copy]").forEach((button) => (button.hidden = false));
reveal(document);
document.addEventListener("htmx:load", (event) => reveal(event.target.parentElement ?? document));

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  // Without a text of its own, a button copies what stands before it.
  await navigator.clipboard.writeText(button.dataset.copy || button.previousElementSibling.textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

document.addEventListener("htmx:sseMessage", () => {
  const rows = document.querySelectorAll("#timeline > li");
  for (const row of [...rows].slice(200)) row.remove();
});
