/** Says at the end of a run which programs are missing, how many tests that cost, and what installs them. */
const PACKAGES = {
  'redis-server': 'redis-server',
  chromium: 'chromium-headless-shell',
  tmux: 'tmux',
  prometheus: 'prometheus',
  gcc: 'gcc libc6-dev',
}

/** Returns a line for each missing program, which tests name as "(needs <program>)". */
export function missingPrograms(names) {
  const counts = new Map()
  for (const name of names) {
    const program = /\(needs ([\w-]+)/.exec(name)?.[1]
    if (program) counts.set(program, (counts.get(program) ?? 0) + 1)
  }
  return [...counts].map(([program, count]) => {
    const fix = PACKAGES[program] ? ` To run them: apt-get install ${PACKAGES[program]}` : ''
    return `${program} is missing: ${count} tests were skipped.${fix}`
  })
}

export default class MissingPrograms {
  onTestRunEnd(modules) {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')])
    for (const line of missingPrograms(skipped.map(({ fullName }) => fullName))) console.log(line)
  }
}
