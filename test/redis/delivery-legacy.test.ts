/** What the dispatcher tells of a legacy stream beside it. */
import { expect, it } from 'vitest'
import { ASK } from '../contract/clock.js'
import { describeNode } from './dispatcher-node.js'

describeNode('a node of the dispatcher beside a legacy stream', ({ server, observe }) => {
  const legacy = { stream: 'commands', group: 'workers' }
  const depths = async (stream = legacy) => {
    const { legacy_stream_depth, legacy_pending_depth } = await observe('legacy', { legacy: stream }).summary(ASK)
    return [legacy_stream_depth, legacy_pending_depth]
  }

  it('tells its length and what is pending, changes nothing, and knows what it cannot know', async () => {
    expect((await observe('legacy').summary(ASK)).legacy_stream_depth).toBeNull()
    expect(await depths()).toEqual([0, 0])
    for (let n = 0; n < 3; n++) await server().cli('XADD', 'commands', '*', 'n', String(n))
    expect(await depths()).toEqual([3, null])
    await server().cli('XGROUP', 'CREATE', 'commands', 'workers', '0')
    expect(await depths()).toEqual([3, 0])
    await server().cli('XREADGROUP', 'GROUP', 'workers', 'w1', 'COUNT', '2', 'STREAMS', 'commands', '>')
    const before = await server().cli('XINFO', 'STREAM', 'commands', 'FULL')
    expect(await depths()).toEqual([3, 2])
    const steady = (text: string) => text.replace(/(seen-time|active-time)\n\d+/g, '$1')
    expect(steady(await server().cli('XINFO', 'STREAM', 'commands', 'FULL'))).toBe(steady(before))
    await server().cli('SET', 'nostream', 'x')
    expect(await depths({ stream: 'nostream', group: 'workers' })).toEqual([null, null])
  })
})
