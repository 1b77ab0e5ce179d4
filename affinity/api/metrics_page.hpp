// SPDX-License-Identifier: Apache-2.0
// The metrics page under construction.
#pragma once

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "affinity/board/counters.hpp"

namespace ka::api {

/// Names and values, in order.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Metrics in Prometheus's text format, in the order in which they are added.
class Page {
 public:
  void counter(const char* name, const char* help, std::uint64_t value) {
    prometheus::ClientMetric metric;
    metric.counter.value = static_cast<double>(value);
    family(name, help, prometheus::MetricType::Counter).metric.push_back(std::move(metric));
  }

  void gauge(const char* name, const char* help, double value) {
    prometheus::ClientMetric metric;
    metric.gauge.value = value;
    family(name, help, prometheus::MetricType::Gauge).metric.push_back(std::move(metric));
  }

  void info(const char* name, const char* help, const Labels& labels) {
    prometheus::ClientMetric metric;
    for (const auto& [label, text] : labels) metric.label.push_back({label, text});
    metric.gauge.value = 1;
    family(name, help, prometheus::MetricType::Gauge).metric.push_back(std::move(metric));
  }

  template <typename Map>
  void labelled(prometheus::MetricType type, const char* name, const char* help, const char* label,
                const Map& values) {
    prometheus::MetricFamily& added = family(name, help, type);
    for (const auto& [key, value] : values) {
      prometheus::ClientMetric metric;
      metric.label = {{label, std::string(key)}};
      (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) =
          static_cast<double>(value);
      added.metric.push_back(std::move(metric));
    }
  }

  void labelled(prometheus::MetricType type, const char* name, const char* help,
                const std::map<Labels, double>& values) {
    prometheus::MetricFamily& added = family(name, help, type);
    for (const auto& [labels, value] : values) {
      prometheus::ClientMetric metric;
      for (const auto& [label, text] : labels) metric.label.push_back({label, text});
      (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
      added.metric.push_back(std::move(metric));
    }
  }

  template <std::size_t kSize>
  void histogram(const char* name, const char* help, const board::Histogram<kSize>& values) {
    family(name, help, prometheus::MetricType::Histogram).metric.push_back(to_metric(values));
  }

  template <std::size_t kSize>
  void labelled(const char* name, const char* help, const char* label,
                const std::map<std::string, board::Histogram<kSize>>& values) {
    prometheus::MetricFamily& added = family(name, help, prometheus::MetricType::Histogram);
    for (const auto& [key, histogram] : values) {
      added.metric.push_back(to_metric(histogram));
      added.metric.back().label = {{label, key}};
    }
  }

  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  template <std::size_t kSize>
  static prometheus::ClientMetric to_metric(const board::Histogram<kSize>& values) {
    prometheus::ClientMetric metric;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i <= kSize; ++i) {
      sum += values.counts[i];
      metric.histogram.bucket.push_back(
          {sum, i == kSize ? std::numeric_limits<double>::infinity() : values.bounds[i]});
    }
    metric.histogram.sample_count = sum;
    metric.histogram.sample_sum = values.sum;
    return metric;
  }

  prometheus::MetricFamily& family(const char* name, const char* help,
                                   prometheus::MetricType type) {
    return families_.emplace_back(prometheus::MetricFamily{name, help, type, {}});
  }

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace ka::api
