// Walking through the page by keyboard. `arguments[0]` is what to do.
//
// `begin` numbers everything that can be reached, in the order of the page, focuses the first of it and says how much there
// is. `look` tells which one has the focus, and the contrast between its ring and what is behind it (WCAG 2.2 §1.4.11, §2.4.7).

const reachable = () => {
    const all = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')];
    const radios = new Set();
    return all.filter((one) => {
        if (one.tabIndex < 0 || one.disabled || !one.getClientRects().length) return false;
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
const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
const brush = canvas.getContext('2d', { willReadFrequently: true });
const over = (colours) => {
    brush.clearRect(0, 0, 1, 1);
    for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
    return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
// The ring stands off from what it surrounds: what is behind it belongs to the parent.
const grounds = [];
for (let up = one.parentElement; up; up = up.parentElement) grounds.unshift(getComputedStyle(up).backgroundColor);
const ground = over(['Canvas', ...grounds]);
const style = getComputedStyle(one);
const [dark, bright] = [light(ground), light(over([`rgb(${ground})`, style.outlineColor]))].sort((a, b) => a - b);
const drawn = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
const box = one.getBoundingClientRect();
return {
    number: one.dataset.walk === undefined ? -1 : Number(one.dataset.walk),
    contrast: drawn ? (bright + 0.05) / (dark + 0.05) : 0,
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    what: one.outerHTML.slice(0, 80),
};
