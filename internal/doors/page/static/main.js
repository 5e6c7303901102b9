// The frame: which view is shown, the colours, the key.

import { access, hasKey, learnAccess, useKey } from './api.js'
import { h, hush, put, say } from './dom.js'
import { askForm } from './ask.js'
import { deadLetters } from './dead.js'
import { graphView } from './graph.js'
import { job } from './job.js'
import { jobs } from './jobs.js'
import { models } from './models.js'
import { takeDrops } from './open.js'
import { workers } from './workers.js'

// views by the first part of the address.
const views = { jobs: place => place.parts.length > 1 ? job(place) : jobs(place), models, ask: askForm, graph: graphView, 'dead-letters': deadLetters, workers }

const main = document.getElementById('main')
let ending = new AbortController()

// place is where the address points to: #/view/part?name=value
function place() {
  const [path, ...queries] = location.hash.replace(/^#\/?/, '').split('?')
  const query = queries.join('?')
  const parts = path.split('/').filter(Boolean).map(part => {
    try {
      return decodeURIComponent(part)
    } catch {
      return part
    }
  })
  return { parts: parts.length ? parts : ['jobs'], query, params: new URLSearchParams(query) }
}

async function show() {
  ending.abort()
  ending = new AbortController()
  const at = place()
  const view = views[at.parts[0]] ? at.parts[0] : 'jobs'
  for (const link of document.querySelectorAll('#nav a')) {
    if (link.dataset.view === (view === 'graph' ? (at.parts[1] === 'job' ? 'jobs' : 'models') : view)) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  main.dataset.view = view
  main.removeAttribute('data-ready')
  leave(location.hash.split('?')[0])
  const said = saying()
  const signal = ending.signal
  try {
    await views[view]({ ...at, main, signal })
  } catch (err) {
    if (err.name === 'AbortError' || signal.aborted) return
    put(main, trouble(err))
  }
  if (signal.aborted) return
  main.dataset.ready = location.hash
  if (said && saying() === said) say('') // it was of what was shown before
}

let shown = '' // the address, without its query

// leave takes away what is said of another model or job, also where the next one is long in coming.
function leave(address) {
  hush()
  if (address !== shown) put(main, h('p', { class: 'hint' }, 'loading…'))
  shown = address
}

const saying = () => document.getElementById('status').textContent

// trouble is a view that could not be shown.
function trouble(err) {
  const locked = err.status === 401
  say(err.message)
  return h('section', { class: 'trouble' },
    h('h1', {}, locked ? 'A key is needed' : 'This could not be shown'),
    h('p', {}, err.message),
    locked ? h('button', { type: 'button', class: 'first', onclick: openKey }, 'Give a key')
      : h('button', { type: 'button', onclick: show }, 'Try again'))
}

window.addEventListener('hashchange', () => {
  show()
  main.focus({ preventScroll: true })
  window.scrollTo(0, 0)
})
// a page that the browser keeps for going back holds no connections: there are six for all pages of a gateway
window.addEventListener('pagehide', () => ending.abort())
window.addEventListener('pageshow', event => event.persisted && show())
document.getElementById('skip').addEventListener('click', event => {
  event.preventDefault()
  main.focus()
})

// Colours: as the system has them, light, or dark.

const slot = 'basetensor colours'
const themes = ['', 'light', 'dark']
const themeButton = document.getElementById('theme')

function dress(theme) {
  if (theme) document.documentElement.dataset.theme = theme
  else delete document.documentElement.dataset.theme
  themeButton.setAttribute('aria-label', 'Colours: ' + (theme || 'as the system has them'))
  themeButton.title = 'Colours: ' + (theme || 'as the system has them')
  themeButton.firstElementChild.textContent = { '': '◐', light: '☀', dark: '☾' }[theme]
}

themeButton.addEventListener('click', () => {
  const theme = themes[(themes.indexOf(document.documentElement.dataset.theme || '') + 1) % themes.length]
  localStorage.setItem(slot, theme)
  dress(theme)
  say(themeButton.title)
})
dress(themes.includes(localStorage.getItem(slot)) ? localStorage.getItem(slot) : '')

// The key.

const dialog = document.getElementById('key')
const field = document.getElementById('key-field')
const accessButton = document.getElementById('access')

function openKey() {
  document.getElementById('key-says').textContent = access.keys
    ? (hasKey() && access.known && access.ask !== undefined && !access.why.includes('key is needed') ? describeAccess() : 'This gateway asks for a key.')
    : 'This gateway was started without keys: everybody who reaches it may look and ask, and this page changes nothing else.'
  field.value = ''
  dialog.showModal()
}

function describeAccess() {
  const whose = access.tenant ? 'tenant ' + access.tenant : 'everybody'
  return 'The key is that of ' + whose + (access.change ? ', and may change things.' : ', ' + access.why + '.')
}

accessButton.addEventListener('click', openKey)
document.getElementById('key-close').addEventListener('click', () => dialog.close())
document.getElementById('key-forget').addEventListener('click', () => enter(''))
document.getElementById('key-form').addEventListener('submit', event => {
  event.preventDefault()
  enter(field.value)
})

async function enter(key) {
  useKey(key)
  field.value = ''
  dialog.close()
  await start()
}

async function start() {
  await learnAccess()
  accessButton.textContent = access.change ? (access.tenant || 'all tenants') : access.keys && !hasKey() ? 'no key' : access.ask ? 'look and ask' : 'read-only'
  accessButton.title = access.change ? describeAccess() : access.why
  document.documentElement.dataset.change = access.change
  await show()
}

takeDrops()
start()
