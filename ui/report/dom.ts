// Elements without markup: every text becomes a text node, so no name from a
// capture can be anything else. Nothing here takes HTML.

type Attributes = Record<string, string | number | boolean>;
type Child = Node | string;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
	for (const [name, value] of Object.entries(attributes)) {
		if (value === false) continue;
		element.setAttribute(name, value === true ? "" : String(value));
	}
	element.append(...children);
	return element;
}

export function html<K extends keyof HTMLElementTagNameMap>(
	name: K,
	attributes: Attributes = {},
	...children: Child[]
): HTMLElementTagNameMap[K] {
	return fill(document.createElement(name), attributes, children);
}

export function svg(name: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
	return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}
