// What Z of a result is called and how it is written. Of a formula it is the count of its models, of a Bayesian network P(evidence).

import { h } from './dom.js'
import { decimals, digits, magnitude, rounded, whole } from './format.js'
import { spoken } from './words.js'

// A whole number follows from its logarithm as far as that has the digits for it: as in btn, up to 10^10.
const mostWhole = 1e10
const wholeSlack = 1e-12

// wholeCount is the whole number that the exact count of a formula is; null if it is none or not known to be one.
function wholeCount(r, { formula }) {
  if (!formula || !r.exact || r.log_z === null) return r.zero && formula && r.exact ? 0 : null
  const z = Math.exp(r.log_z)
  const n = Math.round(z)
  return z <= mostWhole && n >= 1 && Math.abs(z - n) <= wholeSlack * n * Math.max(1, r.log_z) ? n : null
}

// ends are the reasons why an estimate is not better, as btn says them.
const ends = { complete: '; the budget is spent', deadline: '; it was cut short by the deadline' }

// valueName is the name of the logarithm of Z of a model.
export const valueName = ({ formula }) => formula ? 'ln count' : 'ln Z'

// told is a text of the service, which of a formula speaks of the count.
export function told(text, { formula }) {
  const plain = spoken(text)
  return formula ? plain.replace(/\bln Z\b/g, 'ln count').replace(/\bZ\b/g, 'the count') : plain
}

// isProbability reports whether Z of a result is P(evidence): likelihoods above 1 are no probabilities.
const isProbability = (r, { normalised }) => normalised && r.log_z < 1e-9

// brief is Z of a result in a line of a list.
export function brief(r, model) {
  const n = wholeCount(r, model)
  if (n !== null) return 'count = ' + whole(n)
  if (r.exact && !r.zero && r.log_z !== null && isProbability(r, model)) return 'P(evidence) = ' + magnitude(r.log_z)
  if (r.zero) return (model.formula ? 'count' : 'Z') + (r.exact ? ' = 0' : ' ≈ 0')
  return r.log_z === null ? '' : valueName(model) + ' ' + written(r)
}

// counts are those of results as a saved answer has them: the whole number, or else its natural logarithm.
export function counts(results) {
  return results.map(r => {
    const count = wholeCount(r, { formula: true })
    return count !== null ? { count } : r.log_z !== null ? { ln_count: r.log_z } : null
  })
}

// headline is Z with its trust. model says whether it is a formula, or a Bayesian network with normalised rows; what is above 1 is no probability.
export function headline(r, model) {
  if (r.zero) {
    return h('div', { class: 'headline' }, h('p', { class: 'value' }, brief(r, model)), h('p', { class: 'trust' },
      h('span', { class: r.exact ? 'mark exact' : 'mark guess' }, r.exact ? 'exact' : 'not certain'),
      model.formula ? ' no assignment satisfies the formula and the evidence' : ' the evidence or the model is impossible'))
  }
  if (r.log_z === null) return null
  const ln = valueName(model)
  const n = wholeCount(r, model)
  const rounding = isProbability(r, model) ? 'up to rounding' : 'up to rounding; ' + ln.replace('ln', 'log10') + ' = ' + decimals(r.log10_z)
  const [value, mark, text] = trust(r, ln, n === null ? rounding : '')
  const sign = r.exact ? '= ' : '≈ '
  const named = (name, number) => h('p', { class: 'value' }, h('span', { class: 'of' }, name + ' '), sign + number, h('span', { class: 'of' }, ' (ln ', value, ')'))
  return h('div', { class: 'headline' + (r.exact ? '' : ' estimate') },
    n !== null ? named('count', whole(n)) : isProbability(r, model) ? named('P(evidence)', magnitude(r.log_z))
      : h('p', { class: 'value' }, h('span', { class: 'of' }, ln + ' '), value, h('span', { class: 'of' }, ' (natural logarithm)')),
    h('p', { class: 'trust' }, mark, ' ', text), r.bounds && !r.exact ? h('p', { class: 'hint' }, between(r.bounds, model)) : null)
}

// between says what the logarithm of Z lies between, and with which probability.
function between(b, model) {
  const ln = valueName(model)
  const sides = b.lower === null ? ln + ' ≤ ' + digits(b.upper, 9) : b.upper === null ? ln + ' ≥ ' + digits(b.lower, 9)
    : ln + ' is between ' + digits(b.lower, 9) + ' and ' + digits(b.upper, 9)
  return sides + (b.level < 1 ? ' with probability ' + digits(b.level, 6) : '') + ': ' + told(b.how, model)
}

// written is the logarithm of Z so that an estimate never looks like an exact number.
function written(r) {
  if (r.exact) return '= ' + decimals(r.log_z)
  return r.uncertainty === null ? '≈ ' + digits(r.log_z, 6) + ' ± ?' : '≈ ' + rounded(r.log_z, r.uncertainty) + ' ± ' + digits(r.uncertainty, 2)
}

// trust is the logarithm of Z with how good it is; exactly says that of an exact one.
function trust(r, ln, exactly) {
  if (r.exact) return [written(r), h('span', { class: 'mark exact' }, 'exact'), exactly]
  if (r.uncertainty !== null) {
    return [written(r), h('span', { class: 'mark estimate' }, 'estimate'),
      ln + ' is uncertain by about ' + digits(r.uncertainty, 2) + (ends[r.ended] || '')]
  }
  let text = 'of unknown quality'
  if (r.residual !== null && r.ln_explained !== null) text += '; residual ' + digits(r.residual, 6) + ', ln explained ' + digits(r.ln_explained, 6)
  if (r.cancellation_digits !== null) text += '; ' + r.cancellation_digits.toFixed(1) + ' digits cancelled'
  return [written(r), h('span', { class: 'mark guess' }, 'estimate'), text]
}
