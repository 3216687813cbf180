/** The backlog of a legacy stream in the summary of a dispatcher. */
import { expect, it } from 'vitest'
import { ASK } from '../contract/clock.js'
import { describeNode } from './dispatcher-node.js'

describeNode('a node of the dispatcher with a legacy stream', ({ server, observe }) => {
  const legacy = { stream: 'commands', group: 'workers' }
  const numbers = async (stream = legacy) => {
    const summary = await observe('legacy', { legacy: stream, onError: null }).summary(ASK)
    const { legacy_stream_depth, legacy_pending_depth, legacy_stream_lag, legacy_reason } = summary
    return [legacy_stream_depth, legacy_pending_depth, legacy_stream_lag, legacy_reason]
  }

  it('returns null and a reason if the stream is not configured, missing, or of another type', async () => {
    expect(await observe('legacy').summary(ASK)).toMatchObject({
      legacy_stream_depth: null,
      legacy_pending_depth: null,
      legacy_stream_lag: null,
      legacy_reason: 'not_configured',
    })
    expect(await numbers()).toEqual([null, null, null, 'stream_missing'])
    await server().cli('SET', 'nostream', 'x')
    expect(await numbers({ stream: 'nostream', group: 'workers' })).toEqual([null, null, null, 'unreadable'])
  })

  it('counts entries, pending entries and lag, and leaves the stream unchanged', async () => {
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.push((await server().cli('XADD', 'commands', '*', 'n', String(n))).trim())
    expect(await numbers()).toEqual([3, null, null, 'group_missing'])
    await server().cli('XGROUP', 'CREATE', 'commands', 'workers', '0')
    expect(await numbers()).toEqual([3, 0, 3, null])
    await server().cli('XREADGROUP', 'GROUP', 'workers', 'w1', 'COUNT', '1', 'STREAMS', 'commands', '>')
    const before = await server().cli('XINFO', 'STREAM', 'commands', 'FULL')
    expect(await numbers()).toEqual([3, 1, 2, null])
    const steady = (text: string) => text.replace(/(seen-time|active-time)\n\d+/g, '$1')
    expect(steady(await server().cli('XINFO', 'STREAM', 'commands', 'FULL'))).toBe(steady(before))
    // Redis does not know the lag after an undelivered entry was deleted.
    await server().cli('XDEL', 'commands', ids[1] ?? '')
    expect(await numbers()).toEqual([2, 1, null, 'lag_unknown'])
  })
})
