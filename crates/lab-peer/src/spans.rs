//! Sets of sequence numbers as sorted spans.

/// The numbers from `start` to before `end`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub start: u64,
    /// The first beyond.
    pub end: u64,
}

impl Span {
    /// How many numbers.
    pub fn length(self) -> u64 {
        self.end - self.start
    }

    /// True if all of `other` is in it.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Disjoint spans that do not touch, in order.
#[derive(Debug, Clone, Default)]
pub struct Spans(Vec<Span>);

impl Spans {
    /// True if there is no span.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first span.
    pub fn first(&self) -> Option<Span> {
        self.0.first().copied()
    }

    /// Adds `span` and returns the span that it is part of now.
    pub fn insert(&mut self, span: Span) -> Span {
        let from = self.0.partition_point(|other| other.end < span.start);
        let to = self.0.partition_point(|other| other.start <= span.end);
        if from == to {
            self.0.insert(from, span);
            return span;
        }
        let merged =
            Span { start: span.start.min(self.0[from].start), end: span.end.max(self.0[to - 1].end) };
        self.0[from] = merged;
        self.0.drain(from + 1..to);
        merged
    }

    /// True if all of `span` is there.
    pub fn contains(&self, span: Span) -> bool {
        let index = self.0.partition_point(|other| other.end < span.end);
        self.0.get(index).is_some_and(|other| other.contains(span))
    }

    /// Appends the parts of `span` that are not there to `gaps`.
    pub fn gaps_in(&self, span: Span, gaps: &mut Vec<Span>) {
        let mut start = span.start;
        let from = self.0.partition_point(|other| other.end <= start);
        for other in &self.0[from..] {
            if other.start >= span.end {
                break;
            }
            if start < other.start {
                gaps.push(Span { start, end: other.start });
            }
            start = start.max(other.end);
        }
        if start < span.end {
            gaps.push(Span { start, end: span.end });
        }
    }

    /// Forgets all numbers before `bound`.
    pub fn remove_before(&mut self, bound: u64) {
        let gone = self.0.partition_point(|span| span.end <= bound);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use posthaste_units::Rng;

    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    #[test]
    fn agrees_with_a_set_of_numbers() {
        let mut rng = Rng::from_test_seed(1);
        for _ in 0..200 {
            let (mut spans, mut set) = (Spans::default(), BTreeSet::new());
            for _ in 0..30 {
                let start = rng.below(60);
                let added = span(start, start + 1 + rng.below(8));
                let mut gaps = Vec::new();
                spans.gaps_in(added, &mut gaps);
                let missing: Vec<u64> = (added.start..added.end).filter(|n| !set.contains(n)).collect();
                assert_eq!(gaps.iter().flat_map(|gap| gap.start..gap.end).collect::<Vec<_>>(), missing);
                assert_eq!(spans.contains(added), missing.is_empty());
                let merged = spans.insert(added);
                set.extend(added.start..added.end);
                assert!(merged.contains(added) && (merged.start..merged.end).all(|n| set.contains(&n)));
                if rng.chance(0.1) {
                    let bound = rng.below(40);
                    spans.remove_before(bound);
                    set = set.split_off(&bound);
                }
                assert_eq!(spans.0.iter().map(|span| span.length()).sum::<u64>(), set.len() as u64);
                assert_eq!(spans.first().map(|first| first.start), set.first().copied());
            }
        }
    }

    #[test]
    fn touching_spans_become_one() {
        let mut spans = Spans::default();
        spans.insert(span(0, 2));
        spans.insert(span(4, 6));
        assert_eq!(spans.insert(span(2, 4)), span(0, 6));
        assert_eq!(spans.0.len(), 1);
    }
}
