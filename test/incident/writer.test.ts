/** The writer of a recorder: `files` that fail or hang. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { createWriter, type RecordingFiles } from '../../src/incident/writer.js'

const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })

/** Files in memory: the texts of the segments. */
function createFiles(over: Partial<RecordingFiles> = {}) {
  const segments: string[] = []
  const files: RecordingFiles = {
    begin: async () => void segments.push(''),
    append: async (text) => void segments.push(`${segments.pop()}${text}`),
    close: async () => {},
    ...over,
  }
  const errors: unknown[] = []
  return { segments, files, errors, writer: createWriter(files, (error) => errors.push(error)) }
}

const text = (value: string) => async () => value

it('reports a full disk once, and begins a segment again when it can be written', async () => {
  const { files, segments, errors, writer } = createFiles()
  const { append } = files
  await writer.begin(1, text('a'))
  files.append = () => Promise.reject(full)
  await writer.append('b')
  await writer.append('c')
  await writer.begin(2, text('abc'))
  expect([writer.isOpen(), errors]).toEqual([false, [full]])
  files.append = append
  await writer.begin(3, text('abcd'))
  await writer.append('e')
  expect([writer.isOpen(), segments.at(-1), errors]).toEqual([true, 'abcde', [full]])
  files.append = () => Promise.reject(full)
  await writer.append('f')
  expect(errors).toEqual([full, full])
})

it('continues without files that do not settle, calls them again once they have, and closes within a limit', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let settle = () => {}
  let begun = 0
  const hanging = () =>
    new Promise<void>((resolve) => {
      settle = resolve
    })
  const { files, errors, writer } = createFiles({ append: hanging, close: hanging })
  const { begin } = files
  files.begin = (at) => {
    begun++
    return begin(at)
  }
  const first = writer.begin(1, text('a'))
  await vi.advanceTimersByTimeAsync(60_000)
  await first
  await writer.append('b')
  await writer.begin(2, text('ab'))
  expect([begun, writer.isOpen(), errors]).toEqual([
    1,
    false,
    [new Error('the option "files" did not settle within 60000 ms')],
  ])
  settle()
  await vi.advanceTimersByTimeAsync(0)
  const second = writer.begin(3, text('abc'))
  const closed = writer.close()
  await vi.advanceTimersByTimeAsync(60_000)
  await Promise.all([second, closed])
  expect([begun, errors.length]).toEqual([2, 1])
})

it('takes files whose methods throw, or return nothing', async () => {
  const thrown = createFiles({
    begin: () => {
      throw full
    },
  })
  await thrown.writer.begin(1, text('a'))
  expect(thrown.errors).toEqual([full])
  const { errors, writer } = createFiles({ close: (() => undefined) as never })
  await writer.begin(1, text('a'))
  await writer.close()
  expect(errors).toEqual([])
})
