// Elements. Text reaches the document as text nodes and attributes only: names are whatever people write.

const svgSpace = 'http://www.w3.org/2000/svg'

// h makes an element. Properties: class; on*: a listener; a value of null or false is left out, true is an empty attribute.
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children)
}

// s makes an SVG element.
export function s(tag, properties, ...children) {
  return fill(document.createElementNS(svgSpace, tag), properties, children)
}

function fill(e, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value)
    else if (name === 'value' && 'value' in e) e.value = value
    else if (name === 'width%') e.style.width = value + '%' // attributes style are refused
    else if (name === 'left%') e.style.left = value + '%'
    else if (name === 'margin-left%') e.style.marginLeft = value + '%'
    else e.setAttribute(name, value === true ? '' : value)
  }
  e.append(...nodes(children))
  return e
}

function nodes(children) {
  return children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false)
}

// put replaces what an element has, and keeps the focus where the same thing is there again (by id).
export function put(e, ...children) {
  const focused = e.contains(document.activeElement) ? document.activeElement.id : ''
  e.replaceChildren(...nodes(children))
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true })
}

// say tells people who listen to the page what happened.
export function say(text) {
  document.getElementById('status').textContent = text
}

let toastTimer
// alarm shows a message for a while, or until hush.
export function alarm(text) {
  const toast = document.getElementById('toast')
  toast.textContent = text
  toast.className = 'shown'
  clearTimeout(toastTimer)
  toastTimer = setTimeout(hush, 8000)
}

// hush takes the message of alarm away.
export function hush() {
  clearTimeout(toastTimer)
  const toast = document.getElementById('toast')
  toast.className = ''
  toast.textContent = ''
}

// later calls f once after the last of several calls.
export function later(f, ms) {
  let timer
  return (...args) => {
    clearTimeout(timer)
    timer = setTimeout(() => f(...args), ms)
  }
}

// every calls f now and then until the signal ends it, not while the page is out of sight. One call at a time.
export function every(ms, signal, f) {
  let busy = false
  const go = async () => {
    if (busy || document.hidden || signal.aborted) return
    busy = true
    try {
      await f()
    } finally {
      busy = false
    }
  }
  const timer = setInterval(go, ms)
  document.addEventListener('visibilitychange', go, { signal })
  signal.addEventListener('abort', () => clearInterval(timer))
  return go()
}
