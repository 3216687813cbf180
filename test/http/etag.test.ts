/** What answers are compared by: every change of a text is noticed, wherever it stands and however long the text is. */
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { atOnce } from '../../src/internal/async/turns.js'
import { pageSchema } from '../../src/internal/contract/page.js'
import { createEncoder } from '../../src/internal/http/encode.js'
import { comparedText, weakTag } from '../../src/internal/http/etag.js'

describe('a tag', () => {
  it.each([
    1, 3, 4, 7, 64, 16_383, 16_384, 16_385, 50_001,
  ])('of %i characters is another after any change', (length) => {
    const text = 'x'.repeat(length)
    const tags = new Set([weakTag('q', text), weakTag('q', `${text}x`), weakTag('q', `${text}\0`), weakTag('r', text)])
    const places = Array.from({ length: Math.min(length, 40) }, (_, i) => Math.floor((i * length) / 40))
    const changed = [...new Set([...places, length - 1])].flatMap((at) =>
      ['y', '\0', 'é', '😀'].map((other) => text.slice(0, at) + other + text.slice(at + 1)),
    )
    for (const other of changed) tags.add(weakTag('q', other))
    expect(tags.size).toBe(4 + changed.length)
    expect(weakTag('q', text)).toBe(weakTag('q', text))
  })

  it('tells two characters apart that stand on the border of what is read at once', () => {
    const before = 'x'.repeat(16_383)
    expect(weakTag('q', `${before}😀`)).not.toBe(weakTag('q', `${before}😁`))
  })

  it('tells long texts apart of which words have changed places', () => {
    const texts = Array.from({ length: 200 }, (_, i) => `${'abcdefgh'.repeat(i)}ABCDEFGH${'abcdefgh'.repeat(200 - i)}`)
    expect(new Set(texts.map((text) => weakTag('q', text))).size).toBe(200)
  })
})

describe('what is compared', () => {
  const Row = z.object({ id: z.string(), age: z.number() })
  const steps = createEncoder(
    pageSchema(Row).extend({
      completeness: z.object({ complete: z.boolean(), examined: z.number() }).nullable(),
      observed_at: z.string(),
    }),
  )
  const answer = (age: number, change: object = {}) =>
    atOnce(
      steps({
        items: [{ id: 'a', age }],
        next_cursor: null,
        has_more: false,
        completeness: { complete: true, examined: age },
        observed_at: `at ${age}`,
        ...change,
      }),
    )
  const compared = (given: ReturnType<typeof answer>) => comparedText(given, ({ id }: { id: string }) => ({ id }))

  it('is all but the instant, the cost and what ages', () => {
    expect(compared(answer(1))).toBe(compared(answer(2)))
    expect(comparedText(answer(1))).not.toBe(comparedText(answer(2)))
    const others = [
      answer(1, { items: [{ id: 'b', age: 1 }] }),
      answer(1, { has_more: true }),
      answer(1, { completeness: { complete: false, examined: 1 } }),
      answer(1, { completeness: null }),
    ]
    expect(new Set([answer(1), ...others].map(compared)).size).toBe(5)
  })

  it('is the same of an answer without lists', () => {
    const steps = createEncoder(z.object({ total: z.number(), observed_at: z.string() }))
    const count = (given: object) => atOnce(steps(given))
    const [early, late, more] = [
      count({ total: 1, observed_at: 'a' }),
      count({ total: 1, observed_at: 'b' }),
      count({ total: 2, observed_at: 'a' }),
    ]
    expect(comparedText(early)).toBe(comparedText(late))
    expect(comparedText(early)).not.toBe(comparedText(more))
  })
})
