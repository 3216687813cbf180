/** Fails a test file that writes to the console: a test that expects output replaces the method that receives it. */
import { inspect } from 'node:util'
import { afterAll } from 'vitest'

const METHODS = ['debug', 'error', 'info', 'log', 'warn'] as const
const SHOWN = 5

const written: string[] = []
const originals = METHODS.map((method) => [method, console[method]] as const)
for (const method of METHODS)
  console[method] = (...values: unknown[]) => {
    const text = values.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' ')
    if (written.length < 1_000) written.push(text)
  }

afterAll(() => {
  for (const [method, original] of originals) console[method] = original
  if (written.length === 0) return
  const rest = written.length > SHOWN ? [`… and ${written.length - SHOWN} more`] : []
  throw new Error(`unexpected output on the console:\n${[...written.slice(0, SHOWN), ...rest].join('\n')}`)
})
