/** The colours of the two charts: they differ for eyes that see fewer colours, in lightness too, in both themes. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ENDS, OPEN_STATES } from '../../src/dashboard/page/charts/command-chart.js'

type Triple = [number, number, number]

const STYLE = readFileSync('src/dashboard/page/page.css', 'utf8')

/** What is seen with one kind of cones missing: Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB. */
const EYES: Readonly<Record<string, readonly Triple[]>> = {
  all: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}

const times = (rows: readonly Triple[], [a, b, c]: Triple) =>
  rows.map(([x, y, z]) => Math.min(1, Math.max(0, x * a + y * b + z * c))) as Triple

/** Linear RGB of `#abc` or `#aabbcc`. */
function linearOf(hex: string): Triple {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit) : (hex.slice(1).match(/../g) ?? [])
  return digits.map((pair) => {
    const value = Number.parseInt(pair, 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }) as Triple
}

/** OKLab: lightness, and two axes of colour. */
function labOf([r, g, b]: Triple): Triple {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ]
}

const luminanceOf = ([r, g, b]: Triple) => 0.2126 * r + 0.7152 * g + 0.0722 * b

/** The colour of each name, by theme. */
function coloursOf(names: readonly string[], theme: number): [string, Triple][] {
  return names.map((name) => {
    const [, ...hex] = new RegExp(`^\\.${name} \\{\\n {2}--of: light-dark\\((#\\w+), (#\\w+)\\)`, 'm').exec(STYLE) ?? []
    return [name, linearOf(hex[theme] as string)]
  })
}

const pairsOf = <T>(all: readonly T[]) =>
  all.flatMap((one, i) => all.slice(i + 1).map((other) => [one, other] as const))

for (const [theme, background] of [
  ['light', '#ffffff'],
  ['dark', '#1a1c1f'],
] as const)
  for (const names of [OPEN_STATES, ENDS]) {
    const colours = coloursOf(names, theme === 'light' ? 0 : 1)

    it(`differ in lightness and for each kind of eyes: ${names.join(', ')}, ${theme}`, () => {
      const close = Object.entries(EYES).flatMap(([eyes, rows]) =>
        pairsOf(colours).flatMap(([[a, one], [b, other]]) => {
          const [first, second] = [labOf(times(rows, one)), labOf(times(rows, other))]
          const distance = Math.hypot(...first.map((value, i) => value - (second[i] as number)))
          const lightness = Math.abs(first[0] - second[0])
          return distance < 0.1 || lightness < 0.04
            ? [`${eyes}: ${a}, ${b} ${distance.toFixed(2)} ${lightness.toFixed(2)}`]
            : []
        }),
      )
      expect(close).toEqual([])
    })

    it(`stand out from the background: ${names.join(', ')}, ${theme}`, () => {
      const back = luminanceOf(linearOf(background))
      const faint = colours.filter(([, colour]) => {
        const own = luminanceOf(colour)
        return (Math.max(own, back) + 0.05) / (Math.min(own, back) + 0.05) < 2.5
      })
      expect(faint.map(([name]) => name)).toEqual([])
    })
  }
