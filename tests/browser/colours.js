// What stands before the scripts that look at colours: the colour that is seen behind an element, and the contrast of another
// one to it (WCAG 2.2, relative luminance).

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
const behind = (one) => {
    const grounds = [];
    for (let up = one; up; up = up.parentElement) grounds.unshift(getComputedStyle(up).backgroundColor);
    return over(['Canvas', ...grounds]);
};
const contrast = (ground, colour) => {
    const [dark, bright] = [light(ground), light(over([`rgb(${ground})`, colour]))].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
};
