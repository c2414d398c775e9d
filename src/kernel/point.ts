/** What answers at a point: it is given the context of whoever asks, then the question. */
export type Answering = (ctx: never, ...question: never[]) => Promise<unknown>

/**
 * A question that one capability asks and others answer, each in its own declaration.
 *
 * | answers | who is asked                                              | what comes back                 |
 * |---------|-----------------------------------------------------------|---------------------------------|
 * | one     | the only one that answers; two are refused at the start   | its answer                      |
 * | first   | one after the other, until somebody knows                 | the first that is not undefined |
 * | all     | everybody, one after the other                            | all answers                     |
 *
 * A point may name places: answers come in their order. Without places the order is that of the registry, and must not matter.
 */
export interface Point<A extends Answering = Answering, N extends Answers = Answers> {
  /** `<noun>.<what>`, as its owner calls it. */
  name: string
  answers: N
  places: readonly string[]
  /** What holds when nobody knows. */
  nobody: A | undefined
}

type Answers = 'one' | 'first' | 'all'

export const definePoint = {
  one: <A extends Answering>(name: string, nobody: A): Point<A, 'one'> => ({ name, answers: 'one', places: [], nobody }),
  first: <A extends Answering>(name: string, nobody: A, places: readonly string[] = []): Point<A, 'first'> => {
    return { name, answers: 'first', places, nobody }
  },
  all: <A extends Answering>(name: string, places: readonly string[] = []): Point<A, 'all'> => {
    return { name, answers: 'all', places, nobody: undefined }
  },
}

/** One capability's answer, as it stands in its declaration. */
export interface PointAnswer {
  point: Pick<Point, 'name' | 'answers' | 'places'>
  answering: Answering
  place: string | undefined
}

export function answer<A extends Answering>(point: Point<A>, answering: A, place?: string): PointAnswer {
  return { point, answering, place }
}

type Question<A extends Answering> = A extends (ctx: never, ...question: infer Q) => unknown ? Q : never

/** A point can be asked only where its answers get the context that they need. */
export type Ask<C> = <A extends (ctx: C, ...question: never[]) => Promise<unknown>, N extends Answers>(
  point: Point<A, N>,
  ...question: Question<A>
) => Promise<N extends 'all' ? Awaited<ReturnType<A>>[] : Awaited<ReturnType<A>>>

/** The answers of all capabilities, joined. */
export class Points {
  readonly #answers = new Map<PointAnswer['point'], Answering[]>()

  constructor(given: PointAnswer[]) {
    for (const point of new Set(given.map((one) => one.point))) {
      const answers = given.filter((one) => one.point === point)
      for (const { place } of answers)
        if (point.places.length ? !point.places.includes(place ?? '') : place !== undefined)
          throw new Error(`${point.name} has no place "${place}": ${point.places.join(', ') || 'it has none'}`)
      if (point.answers === 'one' && answers.length > 1) throw new Error(`${point.name} takes one answer, and ${answers.length} are given`)
      const places = ({ place }: PointAnswer) => point.places.indexOf(place ?? '')
      this.#answers.set(
        point,
        answers.toSorted((a, b) => places(a) - places(b)).map(({ answering }) => answering),
      )
    }
  }

  asking<C>(context: () => C): Ask<C> {
    return ((point: Point, ...question: never[]) => this.#ask(context() as never, point, question)) as Ask<C>
  }

  async #ask(ctx: never, point: Point, question: never[]): Promise<unknown> {
    const answers = this.#answers.get(point) ?? []
    const said: unknown[] = []
    for (const answering of answers) {
      const one = await answering(ctx, ...question)
      if (point.answers !== 'all' && (one !== undefined || point.answers === 'one')) return one
      said.push(one)
    }
    return point.answers === 'all' ? said : point.nobody?.(ctx, ...question)
  }
}
