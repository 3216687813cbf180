/** The directory of a recording: its lock, and disks that are full or lose it. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'

const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
const disk = vi.hoisted(() => ({ isFull: false }))

vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>()
  const writeSync = (...given: Parameters<typeof fs.writeSync>) => {
    if (disk.isFull) throw full
    return fs.writeSync(...given)
  }
  return { ...fs, writeSync }
})

vi.mock('node:fs/promises', async (load) => {
  const fs = await load<typeof import('node:fs/promises')>()
  async function open(...given: Parameters<typeof fs.open>) {
    const file = await fs.open(...given)
    const { appendFile } = file
    file.appendFile = async (data) => {
      // A full disk takes a part of what is written.
      await appendFile.call(file, disk.isFull ? String(data).slice(0, 1) : data)
      if (disk.isFull) throw full
    }
    return file
  }
  return { ...fs, open }
})

// Another file of this process may have loaded it with the real file system.
vi.resetModules()
const { openRecordingDirectory } = await import('../../src/adapters/recording-directory.js')

function directory(): { path: string; lock: string } {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'recording-')))
  onTestFinished(() => {
    disk.isFull = false
    rmSync(path, { recursive: true, force: true })
  })
  return { path, lock: join(path, 'recording.lock') }
}

describe('the lock of a recording directory', () => {
  it.each([
    '',
    'garbage',
    '0',
    '-1',
    '4294967295',
    `${process.pid}`,
  ])('is taken over if it has %j, which names no other process', async (text) => {
    const { path, lock } = directory()
    writeFileSync(lock, text)
    const files = openRecordingDirectory({ path })
    expect(readFileSync(lock, 'utf8')).toBe(`${process.pid}`)
    await files.close()
    expect(readdirSync(path)).toEqual([])
  })

  it('is respected if its process runs, until it was not refreshed for a minute', async () => {
    const { path, lock } = directory()
    writeFileSync(lock, `${process.ppid}`)
    expect(() => openRecordingDirectory({ path })).toThrow(
      `${path} is already being recorded to by process ${process.ppid}`,
    )
    const then = new Date(Date.now() - 61_000)
    utimesSync(lock, then, then)
    await openRecordingDirectory({ path }).close()
    expect(existsSync(lock)).toBe(false)
  })

  it('is refreshed while the directory is open', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { path, lock } = directory()
    const files = openRecordingDirectory({ path })
    const then = new Date(Date.now() - 61_000)
    utimesSync(lock, then, then)
    vi.advanceTimersByTime(60_000)
    await vi.waitFor(() => expect(statSync(lock).mtimeMs).toBeGreaterThan(then.getTime() + 1_000), 60_000)
    await files.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('refuses a second one in this process, also by another path, and stays until the first one closes', async () => {
    const { path, lock } = directory()
    const other = join(path, 'link')
    symlinkSync(path, other)
    const first = openRecordingDirectory({ path })
    for (const same of [path, other])
      expect(() => openRecordingDirectory({ path: same })).toThrow(`is already being recorded to by process`)
    expect(readFileSync(lock, 'utf8')).toBe(`${process.pid}`)
    await first.close()
    const second = openRecordingDirectory({ path })
    await first.close()
    expect(existsSync(lock)).toBe(true)
    await second.close()
    expect(existsSync(lock)).toBe(false)
  })

  it('is not left by a start that fails, as on a full disk', async () => {
    const { path } = directory()
    disk.isFull = true
    expect(() => openRecordingDirectory({ path })).toThrow('ENOSPC')
    expect(readdirSync(path)).toEqual([])
    disk.isFull = false
    await openRecordingDirectory({ path }).close()
  })
})

describe('the segments of a recording directory', () => {
  it('keeps no file without the first lines of a segment', async () => {
    const { path } = directory()
    const files = openRecordingDirectory({ path })
    await files.begin(1)
    disk.isFull = true
    await expect(files.append('snapshot\n')).rejects.toThrow('ENOSPC')
    expect(files.segments()).toEqual([])
    disk.isFull = false
    await files.begin(2)
    await files.append('snapshot\n')
    disk.isFull = true
    await expect(files.append('rows\n')).rejects.toThrow('ENOSPC')
    disk.isFull = false
    await files.close()
    expect(files.segments().map((segment) => segment.read())).toEqual(['snapshot\nr'])
  })

  it('rejects when the directory was deleted', async () => {
    const { path } = directory()
    const files = openRecordingDirectory({ path: join(path, 'recording') })
    await files.begin(1)
    await files.append('snapshot\n')
    rmSync(join(path, 'recording'), { recursive: true })
    await expect(files.append('rows\n')).rejects.toThrow('was deleted while it was recorded to')
    await files.close()
    mkdirSync(join(path, 'recording'))
    await openRecordingDirectory({ path: join(path, 'recording') }).close()
  })
})
