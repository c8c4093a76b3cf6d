// Walking through the page by keyboard. `arguments[0]` is what to do.
//
// `begin` numbers everything that can be reached, in the order of the page, focuses the first of it and says how much there
// is. `look` tells which one has the focus, and the contrast between its ring and what is behind it (WCAG 2.2 §1.4.11, §2.4.7).

const reachable = () => {
    const all = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')];
    const radios = new Set();
    return all.filter((one) => {
        if (one.tabIndex < 0 || one.disabled || !one.checkVisibility()) return false;
        if (one.type !== 'radio') return true;
        // The arrow keys lead through a group; the tabulator comes to it once.
        const group = [...one.form.elements[one.name]];
        const entry = group.find((radio) => radio.checked) || group[0];
        if (one !== entry || radios.has(one.name)) return false;
        radios.add(one.name);
        return true;
    });
};

if (arguments[0] === 'begin') {
    const all = reachable();
    all.forEach((one, n) => one.setAttribute('data-walk', String(n)));
    all[0].focus();
    return all.length;
}

const one = document.activeElement;
// The ring stands off from what it surrounds: what is behind it belongs to the parent.
const ground = behind(one.parentElement);
const style = getComputedStyle(one);
const drawn = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
const box = one.getBoundingClientRect();
return {
    number: one.dataset.walk === undefined ? -1 : Number(one.dataset.walk),
    contrast: drawn ? contrast(ground, style.outlineColor) : 0,
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    what: one.outerHTML.slice(0, 80),
};
