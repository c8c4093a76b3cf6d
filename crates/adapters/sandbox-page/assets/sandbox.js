// The parts of the page that need a script: copying, the focus, and the connection of the timeline.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  // Without a text of its own, a button copies what stands before it.
  await navigator.clipboard.writeText(button.dataset.copy || button.previousElementSibling.textContent);
  const say = (from, to) => {
    button.textContent = to;
    button.ariaLabel &&= button.ariaLabel.replace(from, to);
  };
  say("Copy", "Copied");
  setTimeout(say, 2000, "Copied", "Copy");
});

// The total of the basket.
document.addEventListener("input", ({ target: { form } }) => {
  const total = form?.querySelector("output");
  if (!total) return;
  let sum = 0;
  for (const pieces of form.querySelectorAll("[name^='q/']")) sum += pieces.value * pieces.closest("tr").dataset.price;
  total.value = `Total: ${(sum / 100).toFixed(2)} PLN`;
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "outcome") return;
  // What is no page of ours is shown as it is.
  if (!event.target.firstElementChild) event.target.textContent = event.detail.xhr.responseText;
  event.target.focus();
  // After a success the lists of the page load themselves anew; after a failure they keep what was entered.
  if (!event.target.querySelector(".notice")) return;
  htmx.trigger(document.body, "called");
  // A form that stays makes another call the next time.
  const form = event.detail.requestConfig.elt;
  if (form.elements.key) form.elements.key.value = crypto.randomUUID();
  // The basket is emptied, and its command shown anew.
  const basket = form.querySelectorAll("[name^='q/']");
  for (const pieces of basket) pieces.value = 0;
  basket[0]?.dispatchEvent(new Event("input", { bubbles: true }));
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target } = event.detail;
  // What went wrong is shown in place of the answer to the call before.
  if (target.id === "outcome") event.detail.shouldSwap = true;
  // What somebody has selected, to copy it, is not replaced under the hand.
  const selected = getSelection();
  if (target.id === "outcome" || selected.isCollapsed || !selected.containsNode(target, true)) return;
  event.detail.shouldSwap = false;
});
document.addEventListener("htmx:sendError", (event) => {
  const outcome = event.detail.target;
  if (outcome.id !== "outcome") return;
  outcome.innerHTML = '<p class="alert">The sandbox does not answer: is it running?</p>';
  outcome.focus();
});

// Browsers open six connections to a host: pages in the background leave theirs to others, those opened there too.
const connect = () => {
  const timeline = document.getElementById("timeline");
  const state = timeline?.["htmx-internal-data"]?.sseEventSource?.readyState;
  // The extension would open a second one beside one that is there, or being opened.
  if (!timeline || (!document.hidden && state < EventSource.CLOSED)) return;
  htmx.trigger(timeline, document.hidden ? "htmx:beforeCleanupElement" : "htmx:afterProcessNode");
};
document.addEventListener("visibilitychange", connect);
document.addEventListener("htmx:sseOpen", () => document.hidden && connect());
