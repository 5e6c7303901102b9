(() => {
  const found = []
  const seen = e => e.checkVisibility({ visibilityProperty: true }) && !e.closest('.unseen, .skip')
  if (document.querySelectorAll('main').length !== 1 || document.querySelectorAll('h1').length !== 1) found.push('not one main and one h1')
  for (const e of document.querySelectorAll('input, select, textarea')) if (seen(e) && !e.labels.length && !e.getAttribute('aria-label')) found.push('no label: ' + e.outerHTML)
  for (const e of document.querySelectorAll('button, a')) if (seen(e) && !(e.textContent.trim() || e.getAttribute('aria-label'))) found.push('no name: ' + e.outerHTML)
  for (const e of document.querySelectorAll('svg')) if (!e.getAttribute('aria-hidden') && !e.getAttribute('aria-label')) found.push('an unnamed drawing')
  const ids = new Set()
  for (const e of document.querySelectorAll('[id]')) ids.has(e.id) ? found.push('twice: ' + e.id) : ids.add(e.id)
  for (const e of document.querySelectorAll('[aria-labelledby]')) if (!document.getElementById(e.getAttribute('aria-labelledby'))) found.push('labelled by nothing: ' + e.outerHTML.slice(0, 80))
  const light = c => {
    const [r, g, b] = c.map(x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const colour = text => text.match(/[\d.]+/g).map(Number)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement
    if (!walker.currentNode.textContent.trim() || !seen(e) || e.closest('option, title')) continue
    const style = getComputedStyle(e)
    const svg = e.closest('svg')
    let ground = null
    for (let up = e; up && !ground; up = up.parentElement) {
      const c = colour(getComputedStyle(up).backgroundColor)
      if (c.length < 4 || c[3] === 1) ground = c
    }
    const node = e.closest('.node')
    if (node) ground = colour(getComputedStyle(node.querySelector('.box')).fill)
    const a = light(colour(svg ? style.fill : style.color).slice(0, 3))
    const b = light(ground.slice(0, 3))
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    if (ratio < 4.5) found.push('contrast ' + ratio.toFixed(2) + ': ' + walker.currentNode.textContent.slice(0, 40))
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push('wider than the window: ' + document.documentElement.scrollWidth)
  const controls = [...document.querySelectorAll('button, a, input, select, textarea, summary')].filter(e => seen(e) && !e.closest('svg, .posteriors'))
    .map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width && r.height)
  controls.forEach(([e, a], i) => {
    for (const [f, b] of controls.slice(0, i)) {
      if (e.contains(f) || f.contains(e)) continue
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
      if (across > 1 && down > 1) found.push(`on each other: ${(e.id || e.textContent).slice(0, 30)} and ${(f.id || f.textContent).slice(0, 30)}`)
    }
    if (a.right > innerWidth + 1 && !e.closest('.scroll, nav')) found.push('beyond the window: ' + (e.id || e.textContent).slice(0, 30))
  })
  for (const node of document.querySelectorAll('.node, .node .value')) { // names and signs, values and numbers
    const [a, b] = [...node.querySelectorAll(':scope > text')].filter(e => e.textContent)
    if (a && b && a.getBBox().x + a.getBBox().width > b.getBBox().x) found.push(`on each other: ${a.textContent} and ${b.textContent}`)
  }
  for (const e of document.querySelectorAll('table.jobs, table.cards, table.timeline, table.posterior')) {
    const box = e.parentElement
    if (box.scrollWidth > box.clientWidth) found.push('cut off: ' + e.className)
  }
  const said = [document.body.innerText, ...[...document.querySelectorAll('[aria-label], [title], [placeholder]')].flatMap(e => [e.ariaLabel, e.title, e.placeholder])]
  for (const text of said) {
    const unit = /.{0,40}\bnats\b/i.exec(text || '') // read as the message queue of that name
    if (unit) found.push('unit: ' + unit[0])
  }
  return found
})()
