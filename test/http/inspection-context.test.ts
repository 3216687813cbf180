import { describe, expect, it } from 'vitest'
import { Deadline } from '../../src/internal/async/deadline.js'
import { createInspectionContext } from '../../src/internal/diagnostics/question.js'

const LIMITS = { examined: 10 }

describe('what inspectors are asked with', () => {
  const client = new AbortController()
  const deadline = new Deadline(1_000, client)

  it('has the bounds and the signal of the deadline, in a copy too, and shows nothing else', () => {
    const ask = createInspectionContext(deadline, LIMITS, () => {})
    expect({ ...ask }).toMatchObject({ signal: deadline.signal, limits: LIMITS })
    expect(Object.keys(ask)).toEqual(['limits', 'signal'])
    expect(Reflect.ownKeys({ ...ask })).toEqual(['limits', 'signal'])
    deadline.clear()
  })

  it('has its signal behind a wrapper, too, and lets it be replaced', () => {
    const ask = createInspectionContext(deadline, LIMITS, () => {})
    expect(Object.create(ask).signal).toBe(deadline.signal)
    expect(new Proxy(ask, {}).signal).toBe(deadline.signal)
    const own = new AbortController().signal
    ask.signal = own
    expect([ask.signal, { ...ask }.signal, createInspectionContext(deadline, LIMITS, () => {}).signal]).toEqual([
      own,
      own,
      deadline.signal,
    ])
  })

  it('reports skipped records', () => {
    const heard: unknown[] = []
    createInspectionContext(deadline, LIMITS, (error) => heard.push(error)).onError?.('a broken record')
    expect(heard).toEqual(['a broken record'])
  })

  it('shares its accessor with every other: one of its own would outlive the request', () => {
    const [one, other] = [1, 2].map(() =>
      Object.getOwnPropertyDescriptor(
        createInspectionContext(deadline, LIMITS, () => {}),
        'signal',
      ),
    )
    expect(one?.get).toBe(other?.get)
  })
})
