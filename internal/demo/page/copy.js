// Copies a text, and says so on the button.

export async function copyText(text, button) {
  const label = button.dataset.label ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    return true;
  } catch {
    return false;
  } finally {
    setTimeout(() => (button.textContent = label), 1500);
  }
}

// copyFrom copies the text of an element, or selects it if a page may not copy, as on
// a host that is not local.
export async function copyFrom(source, button) {
  if (await copyText(source.textContent, button)) return;
  getSelection().selectAllChildren(source);
  button.textContent = "Selected";
}
