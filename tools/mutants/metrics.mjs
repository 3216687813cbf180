/** What a scraper is told, by whom it may be asked, and how much it may cost. */
import { weaken } from './mutant.mjs'

const [SCRAPE, LABELS, HANDLER] = ['scrape', 'labels', 'handler'].map((name) => `test/metrics/${name}.test.ts`)

export const METRICS = [
  ...weaken('src/metrics/family.ts', LABELS, [
    ['a series is there once', 'seen.set(keyOf(sample), sample)', 'seen.set(`${seen.size}`, sample)'],
    ['a number that is none is no sample', 'if (Number.isFinite(sample.value)) seen', 'seen', SCRAPE],
  ]),
  ...weaken('src/metrics/reading.ts', SCRAPE, [
    ['a source that failed is not up', 'outcomes.every((outcome) => outcome !== null)', 'true'],
    ['a source that failed is not complete', 'outcomes.every((outcome) => outcome?.complete)', 'true'],
    ['a scrape gives up what is late', 'await raceAbort(ask(), signal)', 'await ask()'],
    ['a host is told of so many errors of one scrape', 'told++ < ERRORS_TOLD && ', '', HANDLER],
    [
      'a source that keeps no number is asked whether it is there',
      'if (outcomes.length === 0) outcomes.push',
      'if (false) outcomes.push',
    ],
  ]),
  ...weaken('src/metrics/walk.ts', SCRAPE, [
    ['half a list that failed is nothing', `'error' in reading || reading.value`, 'reading.value'],
    ['counts that were cut short are a sample', 'kept.truncated === true ? kept.total : null', 'null'],
    ['a sample says that it is one', 'sampleSize: complete ? null : entries.length', 'sampleSize: null'],
  ]),
  ...weaken('src/metrics/families/delivery.ts', 'test/diagnostics/unheard.test.ts', [
    ['a scope that throws leaves no other one unheard', 'scopes.map(async (scope) =>', 'scopes.map((scope) =>'],
  ]),
  ...weaken('src/metrics/families/delivery.ts', LABELS, [
    ['so many nodes are told of by name', 'list }, scrape, NODES_MAX)', 'list }, scrape)'],
    ['what could be no id is no label', 'checkId(node_id) === undefined)', 'true)'],
    ['nodes that are left out are missed', '&& nameless === 0', ''],
    ['absence from a part of the list says nothing of a scope', 'complete ? [without(scope)] : []', '[without(scope)]'],
  ]),
  ...weaken('src/metrics/families/presence.ts', SCRAPE, [
    ['the minute under way is not shown', 'minuteOf(Date.parse(observed_at)) - 1', 'minuteOf(Date.parse(observed_at))'],
    ['so many reasons are told apart', `samplesBy('reason', Counters.parse(`, `samplesBy('reason', (`],
  ]),
  ...weaken('src/metrics/text.ts', LABELS, [
    ['the value of a label ends where it says', `text.replaceAll(/[\\\\\\n"]/g, `, `text.replaceAll(/[\\\\\\n]/g, `],
    ['a format that is weighed 0 is not wanted', 'open > 0 && ', '', HANDLER],
    [
      'a version that we do not speak is not answered with',
      `[undefined, version].includes(`,
      `[undefined, version, '0.0.1'].includes(`,
      HANDLER,
    ],
  ]),
  ...weaken('src/metrics/metrics.ts', HANDLER, [
    [
      'who is nobody is refused',
      `if (typeof principal?.name === 'string') return principal`,
      `return principal ?? { name: '' }`,
    ],
    ['those who scrape at once share a reading', 'if (current) return current', ''],
    ['a reading is not kept', 'current = undefined', ''],
    ['a scrape takes no query', 'parseQuery(NO_QUERY, search)', ''],
  ]),
  ...weaken('src/http/auth.ts', HANDLER, [
    [
      'a token does not stand in for a key that was sent',
      'token === undefined || headers.has(ADMIN_KEY_HEADER)',
      'token === undefined',
    ],
  ]),
  ...weaken('src/metrics/options.ts', HANDLER, [
    ['so many scopes may be named', 'if (scopes.length > SCOPES_MAX)', 'if (false)'],
    ['a scope that may be named is an id', 'if (reason !== undefined) throw', 'if (false) throw'],
  ]),
]
