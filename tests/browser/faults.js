// What is wrong with the page that the browser shows, in its own words (WCAG 2.2 AA, as far as a script can tell).

const faults = [];
const root = document.documentElement;
const shown = (one) => {
    const box = one.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && one.checkVisibility({ visibilityProperty: true });
};

// Wide text may scroll in a box of its own, never the page.
if (root.scrollWidth > root.clientWidth) faults.push(`the page is ${root.scrollWidth} wide of ${root.clientWidth}`);

// 3.1.1 and 3.1.2
if (!root.lang) faults.push('the page does not say which language it is in');
for (const one of document.querySelectorAll('a[hreflang]')) {
    if (one.lang !== one.hreflang) faults.push(`no lang: ${one.outerHTML}`);
}

// 1.3.1, 3.3.2, 4.1.2
for (const field of document.querySelectorAll('input:not([type=hidden]), textarea, select')) {
    if (field.getAttribute('aria-hidden') === 'true') continue;
    if (field.labels.length === 0 && !field.getAttribute('aria-label')) faults.push(`no label: ${field.outerHTML}`);
}
const names = [...document.querySelectorAll('button, a[href]')].filter((one) => !one.textContent.trim());
faults.push(...names.map((one) => `no name: ${one.outerHTML}`));
const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
faults.push(...ids.filter((id, n) => ids.indexOf(id) !== n).map((id) => `twice: #${id}`));
for (const pointer of document.querySelectorAll('[aria-describedby], [aria-labelledby], label[for], a[href^="#"]')) {
    const named = ['aria-describedby', 'aria-labelledby', 'for'].map((name) => pointer.getAttribute(name) || '');
    named.push(decodeURIComponent((pointer.getAttribute('href') || '').replace(/^#/, '')));
    for (const id of named.join(' ').split(' ').filter(Boolean)) {
        if (!document.getElementById(id)) faults.push(`points nowhere: ${id}`);
    }
}
if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
if (document.querySelectorAll('main').length !== 1) faults.push('not one main');

// 1.4.3 and 1.4.11
for (const one of document.querySelectorAll('main *, header *, footer *')) {
    const text = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text || !shown(one) || one.closest('select')) continue;
    const style = getComputedStyle(one);
    const ratio = contrast(behind(one), style.color);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight, 10) >= 700);
    if (ratio < (large ? 3 : 4.5)) faults.push(`contrast ${ratio.toFixed(2)}: ${one.textContent.trim().slice(0, 40)}`);
}
for (const field of document.querySelectorAll('main input:not([type=hidden], [type=checkbox], [type=radio]), main select, main textarea')) {
    const style = getComputedStyle(field);
    if (shown(field) && contrast(behind(field), style.color) < 4.5) faults.push(`contrast of what is typed: #${field.id}`);
    const edge = contrast(behind(field.parentElement), style.borderTopColor);
    if (shown(field) && edge < 3) faults.push(`edge ${edge.toFixed(2)}: #${field.id}`);
}

// 2.5.8: what is smaller than 24 by 24 has room for a circle of 24 around its middle that meets no other target, nor the circle of
// another small one. Links within a sentence are excepted.
const targets = [...document.querySelectorAll('button, input:not([type=hidden]), select, textarea, summary, a[href]')]
    .filter((one) => shown(one) && !one.closest('.skip'))
    .map((one) => {
        const box = (['checkbox', 'radio'].includes(one.type) && one.labels[0] ? one.labels[0] : one).getBoundingClientRect();
        const small = box.width < 24 || box.height < 24;
        return { one, box, small, x: box.left + box.width / 2, y: box.top + box.height / 2 };
    });
for (const { one, box, x, y } of targets.filter((target) => target.small)) {
    const sentence = one.tagName === 'A' && getComputedStyle(one).display === 'inline'
        && one.parentElement.textContent.trim() !== one.textContent.trim();
    const meets = (other) => {
        if (other.one === one) return false;
        if (other.small) return Math.hypot(other.x - x, other.y - y) < 24;
        const [dx, dy] = [Math.max(other.box.left - x, 0, x - other.box.right), Math.max(other.box.top - y, 0, y - other.box.bottom)];
        return Math.hypot(dx, dy) < 12;
    };
    if (!sentence && targets.some(meets)) faults.push(`small: ${box.width}x${box.height} ${one.outerHTML.slice(0, 80)}`);
}
return faults;
